import { withoutUndefined } from "../core/defined.ts"
import { parseTestCommand } from "../learn/test-runs/commands.ts"
import { testRunsIn } from "../learn/test-runs/runs.ts"
import type { StoredMessage } from "../store/history/store.ts"
import type { TestRunWrite } from "../store/knowledge/test-runs.ts"

/** A command that runs tests, a build or a linter, and that failed and did not pass afterwards. */
export type OpenCheck = { ref: string; command: string; error?: string; times: number }

/**
 * A conversation's messages, a function that formats their refs, and the time to use for messages that have no time of their
 * own.
 */
type ConversationMessages = { messages: StoredMessage[]; refOf: (number: number) => string; ended_at: number }

const MAX_ERROR_CHARS = 200

/**
 * Test runs, builds and linters that failed and did not pass afterwards, newest first. All other commands are ignored, and so
 * are programs that do not exist. A run whose output went through a pipe counts only if the output contains the test results.
 * `project` is its folder, or the folders of all its clones.
 */
export function findOpenChecks(
  project: string | readonly string[],
  conversations: ConversationMessages[],
): OpenCheck[] {
  const failing = new Map<string, OpenCheck & { run?: TestRunWrite }>()
  for (const { failed, run, ...check } of outcomesOf(project, conversations)) {
    const previous = failing.get(check.command)
    failing.delete(check.command)
    if (run?.complete || (run && !failed))
      for (const [command, earlier] of failing) if (earlier.run && covers(run, earlier.run)) failing.delete(command)
    if (failed) failing.set(check.command, { ...check, times: (previous?.times ?? 0) + 1, run })
  }
  return [...failing.values()].reverse().map(({ run: _, ...check }) => check)
}

type Outcome = Omit<OpenCheck, "times"> & { at: number; failed: boolean; run?: TestRunWrite }

function outcomesOf(project: string | readonly string[], conversations: ConversationMessages[]): Omit<Outcome, "at">[] {
  return conversations
    .flatMap((one) => [...testOutcomes(project, one), ...buildOutcomes(one)])
    .sort((a, b) => a.at - b.at)
    .map(({ at: _, ...outcome }) => outcome)
}

function testOutcomes(
  project: string | readonly string[],
  { messages, refOf, ended_at }: ConversationMessages,
): Outcome[] {
  return testRunsIn(messages, [project].flat()).map((run) => {
    const [first] = run.failures
    const error = first && [first.test, first.message].filter((one) => one !== undefined).join(": ")
    return {
      ...outcomeOf(run.command, error, refOf(run.number), run.at ?? ended_at),
      failed: run.outcome === "failed",
      run,
    }
  })
}

function buildOutcomes({ messages, refOf, ended_at }: ConversationMessages): Outcome[] {
  return messages.flatMap(({ number, at, effects }) =>
    effects.flatMap((effect) => {
      if (effect.type !== "command" || effect.failed === undefined || !isBuild(effect.command)) return []
      if (effect.failed && MISSING_COMMAND.test(effect.error ?? "")) return []
      return [{ ...outcomeOf(effect.command, effect.error, refOf(number), at ?? ended_at), failed: effect.failed }]
    }),
  )
}

function outcomeOf(command: string, error: string | undefined, ref: string, at: number): Omit<Outcome, "failed"> {
  return withoutUndefined({
    at,
    ref,
    command: command.replace(/\s+/g, " ").trim(),
    error: error?.slice(0, MAX_ERROR_CHARS),
  })
}

/** True if the later run covers everything that the earlier one ran. */
function covers(later: TestRunWrite, earlier: TestRunWrite): boolean {
  const isWithin = (target: string) =>
    later.targets.length === 0 ||
    later.targets.some(
      (laterTarget) => laterTarget === "" || target === laterTarget || target.startsWith(`${laterTarget}/`),
    )
  return (
    later.kind === earlier.kind &&
    later.folder === earlier.folder &&
    (earlier.targets.length === 0 ? isWithin("") : earlier.targets.every(isWithin)) &&
    (later.filter.length === 0 || earlier.filter.every((name) => later.filter.includes(name)))
  )
}

const MISSING_COMMAND = /command not found|not recognized as|no task \S+ found|missing script/i
const HARMLESS_COMMAND = /^(?:cd|echo|export|set|source)(?: |$)/
const COMMAND_PREFIX = /^(?:(?:\w+=\S*|npx|bunx|pnpm exec|yarn exec|uv run|poetry run|bundle exec|time|env) )*/
const BUILD_COMMAND = new RegExp(
  `^(?:${[
    "go (?:build|vet)",
    "cargo (?:build|check|clippy)",
    "tsc|vue-tsc|eslint|biome (?:check|lint|ci)|prettier --check|webpack|vite build|next build",
    "golangci-lint run|staticcheck|ruff check|mypy|pyright|pylint|flake8|rubocop|shellcheck",
    "(?:dotnet|swift|bazel) build|cmake --build|ninja|make|(?:\\./)?gradlew? .*|(?:\\./)?mvnw? .*",
    "(?:npm|pnpm|yarn|bun) (?:run )?(?:build|lint|check|typecheck|type-check|compile)[\\w:.-]*",
    "(?:mise run|mise r|just|task|turbo run|turbo|rake) (?:build|lint|check|fmt|format|compile)[\\w:.-]*",
  ].join("|")})(?= |$)`,
)

/**
 * True if the line runs a build or a linter, and otherwise only tests and commands such as `cd`. Lines with a pipe do not count,
 * because it hides the exit code. Neither do lines with a here-document.
 */
function isBuild(line: string): boolean {
  if (/(?<!\|)\|(?!\|)|<</.test(line)) return false
  const commands = commandsIn(line)
  const isBuilder = (command: string) => BUILD_COMMAND.test(command)
  return commands.some(isBuilder) && commands.every((command) => isBuilder(command) || parseTestCommand(command))
}

const COMPILER =
  /^(?:go build|cargo (?:build|check)|tsc|vue-tsc|webpack|vite build|next build|(?:dotnet|swift|bazel) build|cmake|ninja|make|(?:\.\/)?gradlew?|(?:\.\/)?mvnw?|\S+ (?:run |r )?(?:build|compile|type-?check))(?=[ :]|$)/

/** True if the line only compiles. Whoever works there next sees at once whether that still fails. */
export function isOnlyCompiling(line: string): boolean {
  return commandsIn(line).every((command) => COMPILER.test(command))
}

/** The commands of a line that do something, without the programs that only start others. */
function commandsIn(line: string): string[] {
  return line
    .split(/&&|\|\||;|\n/)
    .map((command) => command.trim())
    .filter((command) => command !== "" && !HARMLESS_COMMAND.test(command))
    .map((command) => command.replace(COMMAND_PREFIX, ""))
}
