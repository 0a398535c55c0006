import { execFileSync } from "node:child_process"
import { mkdirSync } from "node:fs"

export type Repository = {
  folder: string
  git: (...args: string[]) => string
  /** Runs git with this time for commits. */
  gitAt: (at: string, ...args: string[]) => string
  import: (stream: string | Buffer) => void
}

const PERSON = { GIT_AUTHOR_NAME: "t", GIT_AUTHOR_EMAIL: "t@example.com" }

/** A real repository in a folder of the test, independent of the settings of the person who runs it. */
export function makeRepository(folder: string): Repository {
  mkdirSync(folder, { recursive: true })
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    GIT_CONFIG_NOSYSTEM: "1",
    ...PERSON,
    GIT_COMMITTER_NAME: PERSON.GIT_AUTHOR_NAME,
    GIT_COMMITTER_EMAIL: PERSON.GIT_AUTHOR_EMAIL,
  }
  const run = (args: string[], input?: string | Buffer, at?: string) =>
    execFileSync("git", args, {
      cwd: folder,
      env: { ...env, ...(at !== undefined && { GIT_AUTHOR_DATE: at, GIT_COMMITTER_DATE: at }) },
      encoding: "utf8",
      stdio: ["pipe", "pipe", "pipe"],
      ...(input !== undefined && { input }),
    })
  run(["init", "-q", "-b", "main"])
  return {
    folder,
    git: (...args) => run(args).trim(),
    gitAt: (at, ...args) => run(args, undefined, at).trim(),
    import: (stream) => void run(["fast-import", "--quiet", "--force"], stream),
  }
}

/** One commit of a stream for `git fast-import`: `files` are its commands, `M 100644 inline name` with a text, `D name`. */
export function commitStream(
  message: string,
  at: number,
  files: { name: string; text?: string; from?: string }[],
  first = false,
): string {
  const who = `t <t@example.com> ${Math.floor(at / 1000)} +0000`
  const lines = files.map(({ name, text, from }) => {
    if (from !== undefined) return `R ${JSON.stringify(from)} ${JSON.stringify(name)}\n`
    if (text === undefined) return `D ${JSON.stringify(name)}\n`
    return `M 100644 inline ${JSON.stringify(name)}\ndata ${Buffer.byteLength(text)}\n${text}\n`
  })
  return `${first ? "reset refs/heads/main\n" : ""}commit refs/heads/main\nauthor ${who}\ncommitter ${who}\ndata ${Buffer.byteLength(message)}\n${message}\n${lines.join("")}\n`
}
