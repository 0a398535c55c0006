import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"

const ROOT = join(import.meta.dirname, "../..")

/** The folders of src/ that open connections, and how SECURITY.md names what they are for. */
const WAYS_OUT: Record<string, string> = {
  deliver: "a webhook (",
  embed: "embeddings (`embed.provider`)",
  http: "HTTP (`dex serve --port`)",
  hub: "a hub (`dex hub share`)",
  llm: "a model (`llm.provider`)",
  view: "pages (`dex view`)",
}

/** Types are no connection: `import type` and `{ type X }` are left out. */
const CONNECTS = [
  /^import (?!type\b)(?!\{ (?:type \w+(?:, )?)+ \}).*"node:(?:http|https|http2|net|tls|dgram|dns)(?:\/promises)?"/m,
  /import\("node:(?:http|https|http2|net|tls|dgram|dns)(?:\/promises)?"\)/,
  /(?<![.\w])(?:fetch|WebSocket|EventSource)\((?!request: Request\))/,
]

test("only six folders open connections, and SECURITY.md says what each of them sends or answers", () => {
  const connecting = sources().filter(({ text }) => CONNECTS.some((pattern) => pattern.test(text)))
  expect([...new Set(connecting.map(({ file }) => file.split("/")[0]))].sort()).toEqual(Object.keys(WAYS_OUT))
  const page = readFileSync(join(ROOT, "SECURITY.md"), "utf8")
  expect(Object.values(WAYS_OUT).filter((words) => !page.includes(words))).toEqual([])
})

test("git reaches a network only to copy a repository of documents", () => {
  const reaching = sources().filter(({ file, text }) => {
    const runs = file !== "git/run.ts" && text.includes("runGit(")
    return runs && !text.includes("readsOnly: true")
  })
  expect(reaching.map(({ file }) => file)).toEqual(["git/clone.ts"])
})

function sources(): { file: string; text: string }[] {
  return readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => ({ file: file.replaceAll("\\", "/"), text: readFileSync(join(ROOT, "src", file), "utf8") }))
}
