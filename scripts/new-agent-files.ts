/** The input for the files of a new agent. `folder`: where its sessions are below the home. */
export type NewAgent = { name: string; source: string; folder: string[]; extension: "json" | "jsonl" | "ndjson" }

export const HOME_OF_AGENTS = "packages/more-agents/src"

/** The files that every agent has, as text, by their path. They read what most agents have in common, and count the rest. */
export function agentFiles(agent: NewAgent): Record<string, string> {
  return {
    [`${HOME_OF_AGENTS}/${agent.name}.ts`]: `${connector(agent)}
${parser(agent)}`,
    [`test/agents/${agent.name}.test.ts`]: test(agent),
  }
}

export function variableOf({ name }: { name: string }): string {
  return name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase())
}

function typeOf(agent: NewAgent): string {
  const variable = variableOf(agent)
  return variable[0]!.toUpperCase() + variable.slice(1)
}

/** Its record, and where it stores its sessions. */
export function agentRecord(agent: NewAgent): string {
  const variable = variableOf(agent)
  const folder = agent.folder.slice(0, 2).map((step) => JSON.stringify(step))
  return `/** Other systems, and the variables that move the folder, belong here too. */
export const ${variable}Roots: Roots = belowHome(${folder.join(", ")})

const ${variable}: Agent = {
  source: "${agent.source}",
  name: "${typeOf(agent)}",
  roots: ${variable}Roots,
  basis: "recorded",
  connector: async () => (await import("./${agent.name}.ts")).${variable}Connector,
  without: { resume: "say which command continues a session, or why none does", open: "the same for a first prompt" },
}
`
}

function connector(agent: NewAgent): string {
  const variable = variableOf(agent)
  const isJson = agent.extension === "json"
  const reader = isJson
    ? "readJsonFile(unit.path, after, recordsOfWhole)"
    : "readJsonl(unit.path, after, { strip: withoutBulk })"
  return `import { finishedCall, toolCallPart } from "../../../src/agents/kit/calls.ts"
import type { Connector, Parsed, UnitName } from "../../../src/agents/kit/connector.ts"
import { ${isJson ? "readJsonFile, " : ""}unitsBelow, withProblems } from "../../../src/agents/kit/files.ts"
${isJson ? "" : 'import { readJsonl } from "../../../src/agents/kit/jsonl.ts"\n'}import { parsedFrom, uniqueKeys, withoutBulk } from "../../../src/agents/kit/messages.ts"
import { createCounts } from "../../../src/core/by-name.ts"
import type { Message, Part } from "../../../src/core/conversation.ts"
import { type RawRecord, record, records, string, time } from "../../../src/core/record.ts"
import { ${variable}Roots } from "./records.ts"

const SESSION = /\\.${agent.extension}$/
const MAX_FOLDERS = 4

export const ${variable}Connector: Connector = {
  source: "${agent.source}",
  version: 1,
  roots: ${variable}Roots,
  discover: (root) => withProblems((report) => unitsBelow(root, SESSION, MAX_FOLDERS, report)),
  watched: (root) => [{ folder: root, depth: MAX_FOLDERS, files: SESSION }],
  read: (unit, after) => ${reader},
  parse: parse${typeOf(agent)},
}
${
  isJson
    ? `
/** One for the session, and one for each message: so that a message more does not make all of them new. */
function* recordsOfWhole(whole: RawRecord): Generator<RawRecord> {
  const lists = Object.keys(whole).filter((key) => records(whole[key]).length > 0)
  const messages = lists.sort((a, b) => records(whole[b]).length - records(whole[a]).length)[0] ?? ""
  const { [messages]: said, ...session } = whole
  yield withoutBulk({ type: "dex-session", ...session })
  for (const message of records(said)) yield withoutBulk(message)
}
`
    : ""
}`
}

function parser(agent: NewAgent): string {
  return `/** What most agents have in common. What it does not know is counted: the golden file says what is still to be read. */
function parse${typeOf(agent)}(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const all = [...raw]
  const unknown = createCounts()
  const keys = uniqueKeys()
  const id = unit.key.replace(/^.*\\/|\\.[a-z]+$/g, "")
  const messages: Message[] = []
  for (const one of all) {
    const said = messageOf(one)
    if (!said) unknown.add(string(one.type) ?? "(no type)")
    else if (said.parts.length > 0) messages.push({ ...said, key: keys(string(one.id) ?? \`\${id}:\${said.role}\`) })
  }
  return parsedFrom({ id, cwd: all.find((one) => string(one.cwd))?.cwd, messages }, unknown)
}

/** Undefined for a record that is no message. */
function messageOf(one: RawRecord): Omit<Message, "key"> | undefined {
  const message = record(one.message) ?? one
  const role = string(message.role)
  if (role !== "user" && role !== "assistant" && role !== "system" && role !== "tool") return undefined
  const flat = string(message.content) ?? string(message.text)
  const blocks = flat === undefined ? records(message.content) : [{ type: "text", text: flat }]
  const at = time(one.timestamp) ?? time(one.ts) ?? time(message.timestamp)
  return { role, at, parts: blocks.flatMap((block) => partOf(block, role)) }
}

function partOf(block: RawRecord, role: Message["role"]): Part[] {
  const text = string(block.text) ?? string(block.thinking)
  if (block.type === "tool_use") return [toolCallPart(string(block.name), block.input, string(block.id))]
  if (block.type === "tool_result") {
    // What a call did (a command, an edit, a file that was read) is its \`action\`: see actionByName.
    const output = string(block.content) ?? records(block.content).flatMap((piece) => string(piece.text) ?? []).join("\\n")
    const call_id = string(block.tool_use_id)
    return [finishedCall({ tool: undefined, call_id, output, failed: block.is_error === true, action: {} }).part]
  }
  if (text === undefined) return []
  if (block.type === "thinking") return [{ type: "thinking", text, origin: "agent" }]
  // Not all that is filed as the user's was typed by a person: see splitInjected.
  return [{ type: "text", text, origin: role === "user" ? "person" : role === "assistant" ? "agent" : "injected" }]
}
`
}

function test(agent: NewAgent): string {
  return `import { ${variableOf(agent)}Connector } from "../../${HOME_OF_AGENTS}/${agent.name}.ts"
import { testConnector } from "./contract.ts"

testConnector(${variableOf(agent)}Connector, "test/fixtures/${agent.source}")
`
}
