/** The policy that pages are served with. */
export const POLICY: string;

export interface Site {
  url: string;
  /** Proxies to another server from now on. */
  aim(url: string): void;
  close(): Promise<void>;
}

export function serve(target: string, port?: number): Promise<Site>;
