/** A test run in a command line. */
export type TestCommand = {
  /** The test runner's name, or `script` if another file chooses the runner. */
  runner: string
  /** The command that started the runner: `npm run test:unit`. */
  kind: string
  /** The folder of a preceding `cd`, as written. */
  folder?: string
  /** The files, folders or packages that were tested. Empty if everything was. */
  targets: string[]
  /** If not empty, only tests whose name contains one of these words ran. */
  filter: string[]
  /** True if the run may have tested less than it appears to. */
  partial: boolean
  /** True if the run stops at the first failure, so that more tests may fail. */
  stops: boolean
  /** The program that the output was piped to, such as `tail -5`. Part of the output may be missing. */
  pipedTo?: string
  /** True if nothing else in the command line can have failed. */
  isOnlyCommand: boolean
}

const MAX_CHARS = 2_000
const TOKEN = /&&|\|\||[;|\n]|(?:[^\s"'|;&]|"(?:[^"\\]|\\.)*"|'[^']*'|&(?!&))+/g
/** Matches programs that run no tests: after them, a runner's name is only an argument. */
const NOT_A_RUNNER =
  /^(?:grep|rg|ag|cat|ls|git|gh|echo|printf|which|type|command|pip3?|brew|apt|apt-get|sed|awk|find|fd|head|tail|man|code|vim?|rm|cp|mv|mkdir|touch|cd|kill|pkill|pgrep|ps|wc|diff|open|curl|ssh|sleep|export|source|tree|stat)$/
const INSTALL_WORD = /^(?:install|i|add|ci|remove|uninstall|update|info|view|init|create|dlx-only|help)$/
const WORD_END = "(?= |$)"
const RUNNERS: readonly [runner: string, words: RegExp][] = [
  ["vitest", new RegExp(`^vitest(?: (?:run|watch))?${WORD_END}`)],
  ["jest", new RegExp(`^(?:jest|react-scripts test)${WORD_END}`)],
  ["playwright", new RegExp(`^playwright test${WORD_END}`)],
  ["mocha", new RegExp(`^_?mocha${WORD_END}`)],
  ["pytest", new RegExp(`^(?:pytest|py\\.test)${WORD_END}`)],
  ["unittest", new RegExp(`^unittest${WORD_END}`)],
  ["go", new RegExp(`^(?:go test|gotestsum)${WORD_END}`)],
  ["cargo", new RegExp(`^cargo (?:\\+\\S+ )?(?:test|t|nextest run)${WORD_END}`)],
  ["node", new RegExp(`^node (?:\\S+ ){0,6}--test${WORD_END}`)],
  ["bun", new RegExp(`^bun test${WORD_END}`)],
  ["deno", new RegExp(`^deno test${WORD_END}`)],
  ["rspec", new RegExp(`^rspec${WORD_END}`)],
  ["phpunit", new RegExp(`^(?:phpunit|pest)${WORD_END}`)],
  ["dotnet", new RegExp(`^dotnet test${WORD_END}`)],
  ["gradle", /^gradlew? (?:\S+ ){0,6}?(?:\S*:)?(?:test\w*|check|\w+Test)(?= |$)/],
  ["maven", /^mvnw? (?:\S+ ){0,6}?(?:test|verify|install|package)(?= |$)/],
  ["mix", new RegExp(`^mix test${WORD_END}`)],
  ["swift", new RegExp(`^swift test${WORD_END}`)],
  ["ctest", new RegExp(`^ctest${WORD_END}`)],
  [
    "script",
    /^(?:npm|pnpm|yarn) (?:(?:-\S+|workspace \S+) )*(?:run(?:-script)? )?(?:-\S+ )*t(?:est)?(?:[:.-][\w:.-]+)?(?= |$)/,
  ],
  [
    "script",
    /^(?:bun run|make|just|task|mise run|mise r|turbo run|turbo|rake|rails|tox|nox|bazel) (?:test|spec|check)[\w:.-]*(?= |$)/,
  ],
]
const MAX_WORDS_BEFORE_RUNNER = 8

/** Finds the last test run in a command line. Returns undefined if there is none. */
export function parseTestCommand(command: string): TestCommand | undefined {
  const segments = segmentsOf(command.slice(0, MAX_CHARS))
  let folder: string | undefined
  let testRun: Omit<TestCommand, "isOnlyCommand"> | undefined
  let programs = 0
  for (const { words, pipedTo } of segments) {
    if (words[0] === "cd" && words[1] !== undefined) folder = words[1]
    if (words.length > 0 && !HARMLESS_WORD.test(words[0]!)) programs++
    const run = runOfWords(words)
    if (run) testRun = { ...run, folder, pipedTo }
  }
  return testRun && { ...testRun, isOnlyCommand: programs === 1 }
}

const HARMLESS_WORD = /^(?:cd|echo|export|source|set|\w+=.*)$/

type Segment = { words: string[]; pipedTo?: string }

function segmentsOf(command: string): Segment[] {
  const segments: Segment[] = [{ words: [] }]
  let inPipe = false
  const heredoc = /<<-?\s*['"]?\w/.exec(command)?.index ?? command.length
  for (const [token] of command.slice(0, heredoc).matchAll(TOKEN)) {
    const current = segments.at(-1)!
    if (token === "|" && !inPipe) inPipe = true
    else if (/^(?:&&|\|\||;|\n)$/.test(token)) {
      inPipe = false
      segments.push({ words: [] })
    } else if (inPipe) current.pipedTo = current.pipedTo === undefined ? token : `${current.pipedTo} ${token}`
    else
      current.words.push(
        token.replaceAll(/"((?:[^"\\]|\\.)*)"|'([^']*)'/g, (_, a?: string, b?: string) => a ?? b ?? ""),
      )
  }
  return segments
}

const fileNameIn = (word: string) => word.split("/").at(-1)!

function runOfWords(words: string[]): Omit<TestCommand, "folder" | "pipedTo" | "isOnlyCommand"> | undefined {
  const first = words.findIndex((word) => !/^\w+=/.test(word))
  if (first === -1 || NOT_A_RUNNER.test(fileNameIn(words[first]!))) return undefined
  for (let i = first; i < Math.min(words.length, first + MAX_WORDS_BEFORE_RUNNER); i++) {
    if (INSTALL_WORD.test(words[i]!)) return undefined
    const text = [fileNameIn(words[i]!).replace(/\.(?:[cm]?js|exe|cmd|phar)$/, ""), ...words.slice(i + 1)].join(" ")
    for (const [runner, form] of RUNNERS) {
      const kind = form.exec(text)?.[0]
      if (kind === undefined) continue
      const rest = words.slice(i + kind.split(" ").length)
      if (runner === "go" && rest.includes("-c")) return undefined
      return {
        runner,
        kind: `${kind.replace(/^(vitest) .*/, "$1")}${tagsOf(runner, rest)}`,
        ...selectionIn(runner, rest),
      }
    }
  }
  return undefined
}

/** The build tags of a Go test. With other tags, other tests run. */
function tagsOf(runner: string, words: string[]): string {
  const tags = /(?:^| )-tags[= ](\S+)/.exec(words.join(" "))?.[1]
  return runner === "go" && tags !== undefined ? ` -tags=${tags}` : ""
}

const FILTER_FLAG =
  /^(?:-t|--testNamePattern|--test-name-pattern|-k|-g|--grep|-run|--run|--filter|-e|--example|--tests|-Dtest|-R|--only)$/
const VALUE_FLAG =
  /^(?:-timeout|--timeout|-count|-tags|--tags|-o|-c|--config|-p|--package|-n|--reporter|-r|--outputFile|--project|--maxWorkers|--pool|-j|-W|--tb|--cov|-m|--require|--import|--env|--environment|--logger|-coverprofile|-parallel|-bench|--seed|--retries|--workers|--features|--test|--root|--dir|-f|--format)$/
const STOP_FLAG = /^(?:-x|--bail|--maxfail|--exitfirst|--fail-fast|-failfast)$/
const PARTIAL_FLAG =
  /^(?:--lf|--last-failed|--ff|--onlyChanged|--changed|--onlyFailures|--shard|--related|--short|-short|--collect-only|--co|--list|--listTests|-h|--help|-p|--package|--test|--project|--lib|--doc|--bin|--bins|-m)$/

function selectionIn(runner: string, words: string[]): Pick<TestCommand, "targets" | "filter" | "partial" | "stops"> {
  const selection = { targets: [] as string[], filter: [] as string[], partial: false, stops: false }
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!
    if (/^\d*[<>]/.test(word)) {
      if (/^\d*[<>]+$/.test(word)) i++
      continue
    }
    if (!word.startsWith("-") || word === "-") {
      if (runner === "cargo" && !word.includes("/")) selection.filter.push(word)
      else addTarget(selection, word, runner)
      continue
    }
    const [flag, inline] = splitFlag(word)
    if (PARTIAL_FLAG.test(flag)) selection.partial = true
    if (STOP_FLAG.test(flag)) selection.stops = true
    if (FILTER_FLAG.test(flag)) selection.filter.push(...alternatives(inline ?? words[++i] ?? ""))
    else if (inline === undefined && VALUE_FLAG.test(flag)) i++
  }
  // If no package is named, go tests the package in the current folder.
  if (runner === "go" && selection.targets.length === 0) selection.targets.push(".")
  return selection
}

function splitFlag(word: string): [flag: string, value: string | undefined] {
  const at = word.indexOf("=")
  return at === -1 ? [word, undefined] : [word.slice(0, at), word.slice(at + 1)]
}

/** Matches runners that take any word as a part of a file name. */
const MATCHES_ANY_WORD = /^(?:vitest|jest|playwright|script|bun|mocha)$/

function addTarget(selection: { targets: string[]; filter: string[] }, word: string, runner: string): void {
  if (!/[./\\]/.test(word) && !MATCHES_ANY_WORD.test(runner)) return
  const [path, ...names] = word.split("::")
  selection.targets.push(runner === "go" && /^\.\/?$/.test(path!) ? "." : targetOf(path!))
  if (names.length > 0) selection.filter.push(names.join(" ").replace(/\[.*$/, ""))
}

/** Reduces `./a/b/...`, `a/b/` and `a/b/*.test.ts` to `a/b`, and `.` to the empty string. */
function targetOf(path: string): string {
  return path
    .replaceAll("\\", "/")
    .replace(/(?:^|\/)[^/]*[*{].*$/, "")
    .replace(/\/?\.\.\.$/, "")
    .replace(/:\d+$/, "")
    .replace(/^(?:\.\/)+/, "")
    .replace(/\/+$/, "")
    .replace(/^\.$/, "")
}

/** The alternatives in a pattern, with spaces in place of its operators. */
function alternatives(pattern: string): string[] {
  return pattern
    .split(/\||,| or /)
    .map((one) => one.replaceAll(/[\^$()\\*?]|\.\*/g, " ").trim())
    .filter((one) => one !== "")
}
