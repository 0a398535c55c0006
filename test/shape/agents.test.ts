import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { agents, isOwn, sourceIds } from "../../src/agents/index.ts"

const FOLDER = join(import.meta.dirname, "../../src/agents")
const folders = readdirSync(FOLDER, { withFileTypes: true }).filter(
  (entry) => entry.isDirectory() && entry.name !== "kit",
)

test("every agent's folder is in the list, under the name that its refs begin with", () => {
  const own = agents.filter(({ variantOf }) => variantOf === undefined)
  expect(folders.map(({ name }) => name.replaceAll("-", "_")).sort()).toEqual(own.map(({ source }) => source).sort())
})

test("an agent's record names every file that its folder has for a command", async () => {
  for (const { name } of folders) {
    const agent = agents.find(({ source }) => source === name.replaceAll("-", "_"))!
    const has = (file: string) => existsSync(join(FOLDER, name, file))
    expect([name, has("connector.ts"), has("wiring.ts"), has("hooks.ts")]).toEqual([
      name,
      agent.connector !== undefined,
      agent.wiring !== undefined,
      agent.hooks !== undefined,
    ])
    if (agent.connector) expect((await agent.connector()).source).toBe(agent.source)
  }
})

const NOBODY_TRIED = "it is read by description, and its commands are not known for sure"

/** Why a conversation of theirs is not taken up by its id. */
const NOT_TAKEN_UP: Record<string, string> = {
  OpenClaw: "it takes up sessions by a key, under which a newer one may run by now",
  Zed: "threads are opened in its window only",
  "Roo Code": "tasks are opened in its editor's window only",
  iFlow: NOBODY_TRIED,
  Qoder: NOBODY_TRIED,
  "Open Interpreter": NOBODY_TRIED,
  MiMoCode: NOBODY_TRIED,
  "Tabnine CLI": NOBODY_TRIED,
  omp: NOBODY_TRIED,
  Auggie: NOBODY_TRIED,
  "VS Code": "sessions are opened in its window only",
}

/** Why a conversation is not handed over to them: nothing opens them with a first prompt. */
const NOT_OPENED: Record<string, string> = {
  Amp: "given a prompt, it answers and ends",
  "Kimi Code": "with a prompt it answers once and ends",
  Zed: "its address for a prompt wants the prompt encoded inside it",
  "Roo Code": "nothing outside its editor starts it",
  Crush: "with a prompt it answers once and ends",
  Aider: "with a prompt it answers once and ends",
  iFlow: NOBODY_TRIED,
  Qoder: NOBODY_TRIED,
  "Open Interpreter": NOBODY_TRIED,
  MiMoCode: NOBODY_TRIED,
  "Tabnine CLI": NOBODY_TRIED,
  omp: NOBODY_TRIED,
  Auggie: NOBODY_TRIED,
}

test("what can be read can be taken up and handed over, but for dex's own chats and notes", () => {
  const read = agents.filter(({ connector, source }) => connector && !isOwn(source))
  expect(
    read
      .filter(({ resume }) => !resume)
      .map(({ name }) => name)
      .sort(),
  ).toEqual(Object.keys(NOT_TAKEN_UP).sort())
  expect(
    read
      .filter(({ open }) => !open)
      .map(({ name }) => name)
      .sort(),
  ).toEqual(Object.keys(NOT_OPENED).sort())
})

test("names are given once, and can begin a ref", () => {
  const typed = agents.flatMap(({ source, aliases = [] }) => [source, ...aliases])
  expect(new Set(typed).size).toBe(typed.length)
  expect(sourceIds.filter((source) => !/^[a-z][a-z0-9_]{0,39}$/.test(source))).toEqual([])
})
