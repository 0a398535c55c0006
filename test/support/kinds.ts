import { existsSync, globSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"

const ROOT = join(import.meta.dirname, "../..")
/** What a file that starts a process, a browser or the built program mentions. */
const STARTS = /"node:child_process"|"playwright-core"|dist\/(?:dex|main|index|testing|agent)\.js/
/** These start one although neither they nor their helpers mention it: code of dex or a library does. */
const THROUGH_OTHERS = ["test/embed/local-files.test.ts", "test/watch/reader.test.ts"]
/** These mention one that no test starts. */
const MENTION_ONLY = ["scripts/prices.ts"]

/** The test files that start a process, themselves or through a helper. All others are unit tests. */
export function programTests(): string[] {
  const files = globSync("test/**/*.test.ts", { cwd: ROOT }).map((file) => file.replaceAll("\\", "/"))
  return files.filter((file) => THROUGH_OTHERS.includes(file) || [...withHelpers(file)].some(starts))
}

function starts(file: string): boolean {
  return !MENTION_ONLY.includes(file) && STARTS.test(textOf(file))
}

/** A file, and all that it imports, themselves or through others, outside src. */
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
