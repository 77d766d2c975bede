import { svelte } from "@sveltejs/vite-plugin-svelte";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const sdk = fileURLToPath(new URL("../sdk/typescript/src/index.ts", import.meta.url));
const nexo = process.env["NEXO_URL"] ?? "http://127.0.0.1:8080";
const paths = ["/auth", "/user", "/msg", "/conversation", "/group", "/single-chat", "/server"];

export default defineConfig({
  plugins: [svelte()],
  resolve: { alias: { "nexo-sdk": sdk } },
  build: {
    target: "es2022",
    // The server's policy allows nothing inline.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: {
    fs: { allow: [".."] },
    proxy: {
      ...Object.fromEntries(paths.map((path) => [path, nexo])),
      "/ws": { target: nexo, ws: true },
    },
  },
  test: {
    include: ["tests/**/*.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: "forks",
    maxWorkers: 2,
    minWorkers: 1,
  },
});
