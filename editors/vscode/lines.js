// What the extension knows without an editor: how dex is asked, and what its answer means. No package, and nothing from VS Code.
const { execFile } = require("node:child_process")

const MOST_BYTES = 64 << 20
const MOST_MS = 60_000
/** A longer title does not fit behind a line of code. */
const MOST_TITLE = 60
const LEVELS = { proved: "proved", likely: "likely" }
const REASONS = {
  ran_commit: "it ran the commit",
  wrote_line: "it wrote exactly this line",
  wrote_near: "it wrote next to this line",
  files_and_time: "it edited the file before the commit",
  recorded: "the repository says so",
}

/**
 * Asks dex, without a shell. Rejects with a sentence for the user. Exit code 1 is an answer: nothing was found.
 * @param {string} program a name in PATH, or a file; a script is started with Node
 * @param {string[]} args
 * @param {string} cwd
 * @param {AbortSignal} [signal]
 * @returns {Promise<string>}
 */
function askDex(program, args, cwd, signal) {
  const [file, ...first] = /\.m?js$/.test(program) ? ["node", program] : [program]
  const options = { cwd, signal, maxBuffer: MOST_BYTES, timeout: MOST_MS, windowsHide: true }
  return new Promise((resolve, reject) => {
    const child = execFile(file, [...first, ...args], options, (error, stdout, stderr) => {
      if (!error || error.code === 1) return resolve(stdout)
      if (error.code === "ENOENT")
        return reject(new Error("dex was not found. Install it (npm install -g dexctx), or set dexctx.path."))
      reject(new Error(stderr.trim().split("\n")[0] || `dex ended with ${error.code ?? error.signal}.`))
    })
    child.stdin?.end()
  })
}

/**
 * The lines with an author, by number, from the output of `dex blame FILE --json`. Fields of other types than expected are left out.
 * @param {string} json
 * @returns {Map<number, { label: string, ref: string, conversation: string, commit: string, details: string[] }>}
 */
function authorsIn(json) {
  const { lines } = JSON.parse(json)
  const known = (Array.isArray(lines) ? lines : []).filter(
    (line) => Number.isInteger(line?.line) && Object.hasOwn(LEVELS, line.level) && isRef(line.ref ?? line.conversation),
  )
  return new Map(known.map((line) => [line.line, authorOf(line)]))
}

function authorOf(line) {
  const text = (value) => (typeof value === "string" ? oneLine(value) : "")
  const agent = text(line.agent)
  const title = text(line.title) || "a conversation without a title"
  const day = text(line.date).slice(0, 10)
  const reason = Object.hasOwn(REASONS, line.reason) ? REASONS[line.reason] : ""
  const commit = isCommit(line.commit) ? line.commit : ""
  const short = title.length > MOST_TITLE ? `${title.slice(0, MOST_TITLE - 1)}…` : title
  return {
    label: [agent, short, day].filter((part) => part !== "").join(" · "),
    ref: line.ref ?? line.conversation,
    conversation: isRef(line.conversation) ? line.conversation : line.ref,
    commit,
    details: [
      title,
      [agent, `${LEVELS[line.level]}${reason === "" ? "" : `: ${reason}`}`, day]
        .filter((part) => part !== "")
        .join(" · "),
      commit === "" ? "not committed yet" : `${commit.slice(0, 10)} ${text(line.subject)}`,
    ],
  }
}

/** Text from a conversation on one line, without control and other invisible characters. @param {string} text */
function oneLine(text) {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, " ").trim()
}

/** Whether a value names a conversation or a message, and cannot be an option of a program. @param {unknown} value */
function isRef(value) {
  return typeof value === "string" && /^[\w@][\w@./:+-]{0,300}(?:#\d+)?$/.test(value)
}

/** Whether a text is a commit's hash or a name of a revision, and cannot be an option. @param {unknown} value */
function isCommit(value) {
  return typeof value === "string" && /^[\w][\w./~^-]{0,200}$/.test(value)
}

module.exports = { askDex, authorsIn, isCommit, isRef, oneLine }
