import { expect, test } from "vitest"
import { fixtureProject } from "../../support/fixture-project.ts"

// What each agent wrote in a project, and what it spent, as the program reports it for a fixture of that agent.

test("blame finds what Amp wrote, and usage counts what it spent", async () => {
  const ask = await fixtureProject("test/fixtures/amp/0.0.17-threads", {
    "src/kick.ts": "export const kicks = 1 // once is enough\n",
  })
  expect(await ask("blame", "src/kick.ts")).toMatchObject({ lines: [{ agent: "Amp", level: "proved" }] })
  expect(await ask("usage")).toMatchObject({ total: { input: 35, output: 100, cache_read: 2400 } })
})

test("blame finds what Antigravity wrote", async () => {
  const ask = await fixtureProject("test/fixtures/antigravity/agy-1.1-tools", {
    "src/song.ts": "export const songs = all().sort()\n",
  })
  expect(await ask("blame", "src/song.ts")).toMatchObject({ lines: [{ agent: "Antigravity", level: "proved" }] })
})

test("blame finds what Cline wrote, and usage counts what it spent", async () => {
  const ask = await fixtureProject("test/fixtures/cline/3.0.65-edits-commit", {
    "src/wombat.js": "// counts wombats\nexport let wombats = 1 // the first wombat\n",
  })
  const line = { agent: "Cline", level: "proved" }
  expect(await ask("blame", "src/wombat.js")).toMatchObject({ lines: [line, line] })
  expect(await ask("usage")).toMatchObject({ total: { input: 500, output: 100 } })
})

test("blame finds what Continue wrote, and usage counts what it spent", async () => {
  const ask = await fixtureProject("test/fixtures/continue/1.5.47-edits-resumed", {
    "src/wombat.js": "// counts wombats\nexport let wombats = 1 // the first wombat\n",
  })
  expect(await ask("blame", "src/wombat.js")).toMatchObject({ lines: [{ agent: "Continue" }, { agent: "Continue" }] })
  expect(await ask("usage")).toMatchObject({ total: { input: 700, output: 140 } })
})

test("blame finds what Copilot CLI wrote, and usage counts what it spent", async () => {
  const ask = await fixtureProject("test/fixtures/copilot/1.0.102-edits-commit", {
    "src/wombat.js": "// counts wombats\nexport let wombats = 1 // the first wombat\n",
  })
  expect(await ask("blame", "src/wombat.js")).toMatchObject({
    lines: [
      { agent: "Copilot CLI", level: "proved" },
      { agent: "Copilot CLI", level: "proved" },
    ],
  })
  expect(await ask("usage")).toMatchObject({ total: { input: 500, output: 100 } })
})

test("blame finds what Crush wrote, and usage counts what its sessions took", async () => {
  const ask = await fixtureProject("test/fixtures/crush/0.2-tools-agent", { "tax.go": "const rate, reduced = 19, 7\n" })
  expect(await ask("blame", "tax.go")).toMatchObject({ lines: [{ agent: "Crush", level: "proved" }] })
  expect(await ask("usage")).toMatchObject({ total: { input: 4_400, output: 260 } })
})

test("blame finds what Droid wrote, and usage counts what its sessions took", async () => {
  const ask = await fixtureProject("test/fixtures/droid/0.81-store-branch-subagent", {
    "tax.ts": 'export const tax = kind === "book" ? 7 : 19\n',
  })
  expect(await ask("blame", "tax.ts")).toMatchObject({ lines: [{ agent: "Factory Droid", level: "proved" }] })
  expect(await ask("usage")).toMatchObject({ total: { input: 2_100, output: 480, cache_read: 15_000 } })
})

test("blame finds what Goose wrote, and usage counts what its sessions took", async () => {
  const ask = await fixtureProject("test/fixtures/goose/1.35-tools-compaction-subagent", {
    "rates.ts": "export const rates = { books: 0.07, wine: 0.19 }\n",
  })
  expect(await ask("blame", "rates.ts")).toMatchObject({ lines: [{ agent: "Goose", level: "proved" }] })
  expect(await ask("usage")).toMatchObject({ total: { input: 5_500, output: 660 } })
})

test("blame finds what Grok wrote, and usage counts what it spent", async () => {
  const ask = await fixtureProject("test/fixtures/grok/1.0.41-edits-commit", {
    "src/wombat.js": "// counts wombats\nexport let wombats = 1 // the first wombat\n",
  })
  const line = { agent: "Grok", level: "proved" }
  expect(await ask("blame", "src/wombat.js")).toMatchObject({ lines: [line, line] })
  expect(await ask("usage")).toMatchObject({ total: { input: 500, output: 100 } })
})

test("blame finds what Hermes wrote, and usage counts a session's tokens once", async () => {
  const ask = await fixtureProject("test/fixtures/hermes/database", {
    "src/feed.ts": "export const feed = load().sort()\n",
  })
  expect(await ask("blame", "src/feed.ts")).toMatchObject({ lines: [{ agent: "Hermes Agent", level: "proved" }] })
  expect(await ask("usage")).toMatchObject({ total: { input: 3100, output: 520, cache_read: 9000 } })
})

test("blame finds what Kimi Code wrote, and usage counts what it spent", async () => {
  const ask = await fixtureProject("test/fixtures/kimi_code/2.1.0-edits-commit", {
    "src/wombat.js": "// counts wombats\nexport let wombats = 1 // the first wombat\n",
  })
  const line = { agent: "Kimi Code", level: "proved" }
  expect(await ask("blame", "src/wombat.js")).toMatchObject({ lines: [line, line] })
  expect(await ask("usage")).toMatchObject({ total: { input: 500, output: 100 } })
})

test("blame finds what Kiro wrote", async () => {
  const ask = await fixtureProject("test/fixtures/kiro/cli-database", {
    "src/dunnart.ts": "export const dunnarts = () => load()\n",
  })
  expect(await ask("blame", "src/dunnart.ts")).toMatchObject({ lines: [{ agent: "Kiro", level: "proved" }] })
})

test("blame finds what Vibe wrote, and usage counts a session's tokens once", async () => {
  const ask = await fixtureProject("test/fixtures/mistral_vibe/2.18-tools-subagent", {
    "src/numbat.ts": "export const numbats = [2, 1].sort()\n",
  })
  expect(await ask("blame", "src/numbat.ts")).toMatchObject({ lines: [{ agent: "Mistral Vibe", level: "proved" }] })
  expect(await ask("usage")).toMatchObject({ total: { input: 4000 + 300, output: 410 + 12, cache_read: 1200 } })
})

test("blame finds what OpenClaw wrote, and usage counts what it spent", async () => {
  const ask = await fixtureProject("test/fixtures/openclaw/2026.2-tools", {
    "src/wombat.ts": "let wombats = 1 // the first wombat\n",
  })
  expect(await ask("blame", "src/wombat.ts")).toMatchObject({ lines: [{ agent: "OpenClaw", level: "proved" }] })
  expect(await ask("usage")).toMatchObject({ total: { input: 1710, output: 244, cache_read: 8900 } })
})

test("blame finds what OpenHands wrote, and usage counts a conversation's tokens once", async () => {
  const text = "export type Quoll = {\n  name: string\n  spots: number // as many as were counted\n}\n"
  const ask = await fixtureProject("test/fixtures/openhands/1.x-tools", { "src/quoll.ts": text })
  const { lines } = (await ask("blame", "src/quoll.ts")) as { lines: object[] }
  expect(lines[2]).toMatchObject({
    text: "  spots: number // as many as were counted",
    agent: "OpenHands",
  })
  expect(await ask("usage")).toMatchObject({ total: { input: 1700, output: 430, cache_read: 3000 } })
})

test("blame finds what Qwen Code wrote, and usage counts what it spent", async () => {
  const ask = await fixtureProject("test/fixtures/qwen_code/0.24.4-edits-commit", {
    "src/wombat.js": "// counts wombats\nexport let wombats = 1 // the first wombat\n",
  })
  const line = { agent: "Qwen Code", level: "proved" }
  expect(await ask("blame", "src/wombat.js")).toMatchObject({ lines: [line, line] })
  expect(await ask("usage")).toMatchObject({ total: { input: 500, output: 100 } })
})

test("blame finds what Roo Code wrote, and usage counts what its tasks took", async () => {
  const ask = await fixtureProject("test/fixtures/roo_code/3.52-native-tools-subtask", {
    "src/tax.ts": "export const rate = books ? 0.07 : 0.19\n",
  })
  expect(await ask("blame", "src/tax.ts")).toMatchObject({ lines: [{ agent: "Roo Code", level: "proved" }] })
  expect(await ask("usage")).toMatchObject({ total: { input: 3_300, output: 420, cache_read: 5_000 } })
})

test("blame finds what VS Code wrote, and usage counts what it spent", async () => {
  const ask = await fixtureProject("test/fixtures/vscode/1.109-operation-log", {
    "total.ts": "export const total = Math.ceil(net + tax)\n",
  })
  expect(await ask("blame", "total.ts")).toMatchObject({ lines: [{ agent: "VS Code", level: "proved" }] })
  expect(await ask("usage")).toMatchObject({ total: { input: 5_200, output: 310 } })
})

test("blame finds what Zed wrote, and usage counts what its threads took", async () => {
  const line = "export const port = Number(env.PORT ?? 8080)"
  const ask = await fixtureProject("test/fixtures/zed/0.3.0-tools-subagent", { "src/server.ts": `${line}\n` })
  expect(await ask("blame", "src/server.ts")).toMatchObject({ lines: [{ agent: "Zed", level: "proved" }] })
  expect(await ask("usage")).toMatchObject({
    total: { input: 4_200, output: 400, cache_read: 12_000 },
  })
})
