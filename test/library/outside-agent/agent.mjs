import { join } from "node:path"
import { entriesOf, fileAt, readJsonl, record, string, unitOfFile } from "dexctx/agent"

/** @type {import("dexctx/agent").Connector} */
const connector = {
  source: "notebook",
  version: 1,
  roots: ({ home }) => [join(home, ".notebook", "sessions")],
  *discover(root) {
    const problems = []
    const report = (problem) => void problems.push(problem)
    for (const { name } of entriesOf(root, report)) {
      const path = join(root, name)
      const stat = name.endsWith(".jsonl") ? fileAt(path, report) : undefined
      if (stat) yield unitOfFile(path, name, stat)
    }
    yield* problems
  },
  read: (unit, after) => readJsonl(unit.path, after),
  parse,
}

/** @type {import("dexctx/agent").OutsideAgent} */
export const agent = {
  source: "notebook",
  name: "Notebook",
  connector: async () => connector,
  resume: (id) => ["notebook", "--continue", id],
}

function parse(records, { key }) {
  const unknown = {}
  const messages = []
  let cwds = []
  for (const entry of records) {
    if (entry.type === "session") cwds = [string(entry.cwd)].filter((cwd) => cwd !== undefined)
    else if (entry.type === "said") messages.push(messageOf(entry))
    else
      Object.defineProperty(unknown, String(entry.type), {
        value: (Object.hasOwn(unknown, String(entry.type)) ? unknown[String(entry.type)] : 0) + 1,
        enumerable: true,
        writable: true,
        configurable: true,
      })
  }
  if (messages.length === 0) return { conversations: [], unknown }
  const id = key.replace(/\.jsonl$/, "")
  const prompt = messages.find(({ role }) => role === "user")?.parts[0].text
  const title = prompt && { text: prompt.slice(0, 80), from: "first_prompt" }
  return { conversations: [{ id, kind: "person", ...(title && { title }), cwds, messages, authority: 1 }], unknown }
}

function messageOf(entry) {
  const isPerson = entry.who === "person"
  const text = string(record(entry.body)?.text) ?? ""
  return {
    key: String(entry.id),
    role: isPerson ? "user" : "assistant",
    at: Number(entry.at),
    parts: [{ type: "text", text, origin: isPerson ? "person" : "agent" }],
  }
}
