/** The input for the files of a new agent. `folder` is the path of its sessions below the home folder. */
export type NewAgent = { name: string; source: string; folder: string[]; extension: "json" | "jsonl" | "ndjson" }

export const AGENTS_FOLDER = "packages/more-agents/src"

/** The text of every agent's files, by path. The generated code reads what most agents have in common and counts the rest. */
export function agentFiles(agent: NewAgent): Record<string, string> {
  return {
    [`${AGENTS_FOLDER}/${agent.name}.ts`]: `${connector(agent)}
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

/** The text of the agent's record, with the folder of its sessions. */
export function agentRecord(agent: NewAgent): string {
  const variable = variableOf(agent)
  const folder = agent.folder.slice(0, 2).map((step) => JSON.stringify(step))
  return `/** Add the folders on other systems, and the variables that move the folder. */
export const ${variable}Roots: Roots = belowHome(${folder.join(", ")})

const ${variable}: Agent = {
  source: "${agent.source}",
  name: "${typeOf(agent)}",
  roots: ${variable}Roots,
  basis: "recorded",
  connector: async () => (await import("./${agent.name}.ts")).${variable}Connector,
  whyMissing: { resume: "name the command that resumes a session, or say why there is none", open: "the same for a first prompt" },
}
`
}

function connector(agent: NewAgent): string {
  const variable = variableOf(agent)
  const isJson = agent.extension === "json"
  const reader = isJson
    ? "readJsonFile(unit.path, after, recordsOfFile)"
    : "readJsonl(unit.path, after, { strip: cutLongTexts })"
  return `import { resultOfCall, toolCallPart } from "../../../src/agents/kit/calls.ts"
import type { Connector, Parsed, UnitName } from "../../../src/agents/kit/connector.ts"
import { ${isJson ? "readJsonFile, " : ""}unitsBelow, withProblems } from "../../../src/agents/kit/files.ts"
${isJson ? "" : 'import { readJsonl } from "../../../src/agents/kit/jsonl.ts"\n'}import { cutLongTexts, parsedFrom, uniqueKeys } from "../../../src/agents/kit/messages.ts"
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
/** Yields one record for the session and one per message, so that a new message does not change all of them. */
function* recordsOfFile(file: RawRecord): Generator<RawRecord> {
  const lists = Object.keys(file).filter((key) => records(file[key]).length > 0)
  const messages = lists.sort((a, b) => records(file[b]).length - records(file[a]).length)[0] ?? ""
  const { [messages]: list, ...session } = file
  yield cutLongTexts({ type: "dex-session", ...session })
  for (const message of records(list)) yield cutLongTexts(message)
}
`
    : ""
}`
}

function parser(agent: NewAgent): string {
  return `/** Parses what most agents have in common. Unknown records are counted; the golden file lists them. */
function parse${typeOf(agent)}(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const all = [...raw]
  const unknown = createCounts()
  const keys = uniqueKeys()
  const id = unit.key.replace(/^.*\\/|\\.[a-z]+$/g, "")
  const messages: Message[] = []
  for (const one of all) {
    const message = messageOf(one)
    if (!message) unknown.add(string(one.type) ?? "(no type)")
    else if (message.parts.length > 0) messages.push({ ...message, key: keys(string(one.id) ?? \`\${id}:\${message.role}\`) })
  }
  return parsedFrom({ id, cwd: all.find((one) => string(one.cwd))?.cwd, messages }, unknown)
}

/** Returns undefined for a record that is not a message. */
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
    // Set \`action\` to what the call did (a command, an edit, a file that was read); see actionByName.
    const output = string(block.content) ?? records(block.content).flatMap((piece) => string(piece.text) ?? []).join("\\n")
    const call_id = string(block.tool_use_id)
    return [resultOfCall({ tool: undefined, call_id, output, failed: block.is_error === true, action: {} }).part]
  }
  if (text === undefined) return []
  if (block.type === "thinking") return [{ type: "thinking", text, origin: "agent" }]
  // A person did not type everything in the user's turn; see splitInjected.
  return [{ type: "text", text, origin: role === "user" ? "person" : role === "assistant" ? "agent" : "injected" }]
}
`
}

function test(agent: NewAgent): string {
  return `import { ${variableOf(agent)}Connector } from "../../${AGENTS_FOLDER}/${agent.name}.ts"
import { testConnector } from "./contract.ts"

testConnector(${variableOf(agent)}Connector, "test/fixtures/${agent.source}")
`
}
