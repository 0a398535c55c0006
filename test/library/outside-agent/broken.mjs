export const agent = { source: "codex", name: "Not Codex", connector: async () => ({}) }
