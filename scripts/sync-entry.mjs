// What reads new messages is one file: for `dex sync`, and for the thread of a server.
export * from "../src/cli/quick-commands.ts"
export const startServeThread = () => import("../src/serve/mcp/serve-thread.ts")
