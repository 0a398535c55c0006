import type { Part } from "../../core/conversation.ts"
import type { StoredMessage } from "../../store/history/store.ts"
import type { TestRunWrite } from "../../store/knowledge/test-runs.ts"
import { pathBelowAny } from "../paths.ts"
import { parseTestCommand, type TestCommand } from "./commands.ts"
import { type FailedTest, parseTestOutput } from "./output.ts"

const MAX_COMMAND_LENGTH = 300

/**
 * Finds the test runs in a conversation, oldest first. Leaves out runs whose outcome is not known. Paths inside the project are
 * relative to it. `complete` means that the run left out no tests, and that every test that is not among the failures has passed.
 * Pure.
 */
export function testRunsIn(messages: StoredMessage[], roots: readonly string[]): TestRunWrite[] {
  const live = messages.filter(({ superseded, copied, abandoned }) => !superseded && !copied && !abandoned)
  const results = new Map(
    live.flatMap(({ parts }) =>
      parts.flatMap((part) =>
        part.type === "tool_result" && part.call_id !== undefined ? [[part.call_id, part] as const] : [],
      ),
    ),
  )
  return live.flatMap(({ effects, number, at }) =>
    effects.flatMap((effect) => {
      const test = effect.type === "command" ? parseTestCommand(effect.command) : undefined
      if (effect.type !== "command" || test === undefined) return []
      const result: (Part & { type: "tool_result" }) | undefined =
        effect.call_id === undefined ? undefined : results.get(effect.call_id)
      const run = runOf(test, result?.text || effect.error || "", effect.failed, roots)
      if (run === undefined) return []
      return [{ number, at, command: effect.command.slice(0, MAX_COMMAND_LENGTH), ...run }]
    }),
  )
}

/** Matches programs that remove lines anywhere in an output. `tail` does not match: the counts are at the end. */
const CUTTING_PROGRAM = /^(?:grep|egrep|rg|sed|awk|cut|less|jq|sort|uniq|wc)$/

function isCut(pipedTo: string, output: string): boolean {
  return pipedTo.split("|").some((program) => {
    const [name = "", ...args] = program.trim().split(/\s+/)
    if (name !== "head") return CUTTING_PROGRAM.test(name)
    const limit = Number(/(\d+)$/.exec(args.join(" "))?.[1] ?? 10)
    return output.split("\n", limit + 1).length >= limit
  })
}

function runOf(
  test: TestCommand,
  output: string,
  failed: boolean | undefined,
  roots: readonly string[],
): Omit<TestRunWrite, "number" | "at" | "command"> | undefined {
  const parsed = parseTestOutput(output)
  const isOutputCut = test.pipedTo !== undefined && isCut(test.pipedTo, output)
  const hasFailedByStatus = test.pipedTo === undefined && (!failed || test.isOnlyCommand) ? failed : undefined
  const hasFailed = parsed === undefined ? hasFailedByStatus : parsed.failed > 0
  // Without counts, the end of a truncated output says nothing about the rest. A failure in it still counts.
  if (hasFailed === undefined || (!hasFailed && isOutputCut && parsed?.counted !== true)) return undefined
  // A successful run without results may have found no tests.
  if (parsed === undefined && !hasFailed && output.trim() !== "" && /no tests?\b/i.test(output)) return undefined
  const failures = (parsed?.failures ?? []).map((failure) => withPathInProject(failure, test, roots))
  const areAllNamed =
    parsed !== undefined &&
    failures.length >= parsed.failed &&
    (parsed.counted || test.pipedTo === undefined) &&
    parsed.runner !== "cargo"
  return {
    runner: test.runner === "script" ? (parsed?.runner ?? test.runner) : test.runner,
    kind: test.kind,
    script: test.runner === "script",
    folder: test.folder === undefined ? "" : (folderBelow(roots, test.folder) ?? test.folder),
    targets: test.targets.map((target) => pathBelowAny(roots, target) ?? target),
    filter: test.filter,
    outcome: hasFailed ? "failed" : "passed",
    failed: parsed?.failed ?? (hasFailed ? 1 : 0),
    passed: parsed?.passed,
    failures,
    complete: !test.partial && (!hasFailed || (areAllNamed && !test.stops)),
  }
}

function folderBelow(roots: readonly string[], folder: string): string | undefined {
  if (roots.includes(folder.replace(/\/$/, "")) || folder === ".") return ""
  return pathBelowAny(roots, folder)?.replace(/\/$/, "")
}

function withPathInProject(
  { test, file, message }: FailedTest,
  { folder }: TestCommand,
  roots: readonly string[],
): FailedTest {
  if (file === undefined) return { test, message }
  const pathInProject = pathBelowAny(roots, file) ?? file
  const folderInProject = folder === undefined ? "" : (folderBelow(roots, folder) ?? "")
  const path =
    folderInProject === "" || file.startsWith("/") || pathInProject.startsWith(`${folderInProject}/`)
      ? pathInProject
      : `${folderInProject}/${pathInProject}`
  const name = test.startsWith(file) ? `${path}${test.slice(file.length)}` : test
  return { test: name, file: path, message }
}
