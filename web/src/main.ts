import { mount } from "svelte";
import App from "./App.svelte";
import { learnLimits } from "./limits.ts";
import { watchNews } from "./notify.svelte.ts";
import { session } from "./session.svelte.ts";
import { settings } from "./settings.svelte.ts";
import "./style/tokens.css";
import "./style/base.css";

settings.apply();
watchNews();
void session.start();
void learnLimits();
mount(App, { target: document.getElementById("app")! });
