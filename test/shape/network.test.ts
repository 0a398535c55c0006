import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { readSource, sourceFiles } from "../support/source-files.ts"

const ROOT = join(import.meta.dirname, "../..")

/** The folders of src/ that open connections, and the words in SECURITY.md for their purpose. */
const WAYS_OUT: Record<string, string> = {
  embed: "embeddings (`embed.provider`)",
  "hub-client": "a hub (`dex hub share`)",
  llm: "a model (`llm.provider`)",
  "serve/http": "HTTP (`dex serve --port`)",
  "suggest/deliver": "a webhook (",
  view: "pages (`dex view`)",
}

/** Code that opens connections. Imports of types alone do not match. */
const CONNECTS = [
  /^import (?!type\b)(?!\{ (?:type \w+(?:, )?)+ \}).*"node:(?:http|https|http2|net|tls|dgram|dns)(?:\/promises)?"/m,
  /import\("node:(?:http|https|http2|net|tls|dgram|dns)(?:\/promises)?"\)/,
  /(?<![.\w])(?:fetch|WebSocket|EventSource)\((?!request: Request\))/,
  /^import \{[^}]*\bsend\b[^}]*\} from "[./]+\/net\/client\.ts"/m,
]

/** Code that sends an HTTP request. */
const SENDS = [
  /import\("(?:node:)?https?2?"\)/,
  /(?<![.\w])(?:fetch|WebSocket|EventSource)\((?!request: Request\))/,
  /"undici"/,
]
const FROM_HTTP = /^import \{([^}]*)\} from "(?:node:)?https?2?"/gm

test("only one file sends HTTP requests, in dex and in the hub; a page in the browser asks its own server", () => {
  const sends = ({ text }: { text: string }) => {
    const taken = [...text.matchAll(FROM_HTTP)].flatMap(([, names]) => names!.split(",").map((name) => name.trim()))
    const others = taken.filter((name) => name !== "" && name !== "createServer" && !name.startsWith("type "))
    return others.length > 0 || SENDS.some((pattern) => pattern.test(text))
  }
  const all = [...sources(), ...hubSources()]
  expect(all.length).toBeGreaterThan(500)
  const sending = all.filter((one) => !one.file.startsWith("view/client/") && sends(one))
  expect(sending.map(({ file }) => file)).toEqual(["net/client.ts"])
})

test("only six folders open connections, and SECURITY.md says what each one sends or answers", () => {
  const connecting = sources().filter(({ text }) => CONNECTS.some((pattern) => pattern.test(text)))
  const folders = new Set(connecting.map(({ file }) => /^(?:serve\/|suggest\/(?=.*\/))?[^/]+/.exec(file)![0]))
  expect(folders.delete("net")).toBe(true) // for the others
  expect([...folders].sort()).toEqual(Object.keys(WAYS_OUT))
  const page = readFileSync(join(ROOT, "SECURITY.md"), "utf8")
  expect(Object.values(WAYS_OUT).filter((words) => !page.includes(words))).toEqual([])
})

test("git uses the network only to copy a repository of documents", () => {
  const reaching = sources().filter(({ file, text }) => {
    const runs = file !== "git/run.ts" && text.includes("runGit(")
    return runs && !text.includes("readsOnly: true")
  })
  expect(reaching.map(({ file }) => file)).toEqual(["git/clone.ts"])
})

function sources(): { file: string; text: string }[] {
  return sourceFiles.map((file) => ({ file: file.replaceAll("\\", "/"), text: readSource(file) }))
}

function hubSources(): { file: string; text: string }[] {
  return globSync("hub/src/**/*.ts", { cwd: ROOT }).map((file) => ({
    file: file.replaceAll("\\", "/"),
    text: readFileSync(join(ROOT, file), "utf8"),
  }))
}
