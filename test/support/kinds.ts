import { existsSync, globSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"

const ROOT = join(import.meta.dirname, "../..")
/** Matches a mention of something that starts a process: a module, a browser driver, or the built program. */
const STARTS = /"node:child_process"|"playwright-core"|dist\/(?:dex|main|index|testing|agent)\.js/
/** Files that start a process without a mention in them or their helpers, because code of dex or of a library starts it. */
const THROUGH_OTHERS = ["test/embed/local-files.test.ts", "test/watch/reader.test.ts"]
/** Files with such a mention whose code starts no process in a test. */
const MENTION_ONLY = ["scripts/prices.ts"]

/** The test files that start a process, directly or through a helper. All others are unit tests. */
export function programTests(): string[] {
  const files = globSync("test/**/*.test.ts", { cwd: ROOT }).map((file) => file.replaceAll("\\", "/"))
  return files.filter((file) => THROUGH_OTHERS.includes(file) || [...withHelpers(file)].some(starts))
}

function starts(file: string): boolean {
  return !MENTION_ONLY.includes(file) && STARTS.test(textOf(file))
}

/** A file and everything outside src that it imports, directly or indirectly. */
function withHelpers(file: string): Set<string> {
  const files = new Set([file])
  for (const one of files)
    for (const [, path] of textOf(one).matchAll(/(?:from|import) "(\.[^"]+)"/g)) {
      const helper = join(dirname(one), path!).replaceAll("\\", "/")
      if (!helper.startsWith("src/") && existsSync(join(ROOT, helper))) files.add(helper)
    }
  return files
}

const texts = new Map<string, string>()

function textOf(file: string): string {
  const text = texts.get(file) ?? readFileSync(join(ROOT, file), "utf8")
  texts.set(file, text)
  return text
}
