import { join } from "node:path"
import { expect, test } from "vitest"
import {
  codeOf,
  commit,
  conversationsOfLines,
  createAsk,
  FIRST,
  ONE,
  put,
  refTo,
  SECOND,
  session,
  TWO,
} from "../../support/blame-shop.ts"
import { makeRepository, type Repository } from "../../support/repository.ts"
import { tempDir } from "../../support/temp.ts"
import { warmDex } from "../../support/warm.ts"

const NUMBATS = codeOf("numbat")
const refsOf = (lines: string[], id?: string) => lines.map(() => (id === undefined ? "" : refTo(id)))

/** A repository and its copy with another remote, and a conversation that committed in the first. */
async function twoRepositories(copiedBefore: "the commit" | "any work") {
  const home = tempDir()
  const upstream = makeRepository(join(home, "upstream"))
  upstream.git("remote", "add", "origin", "https://github.com/acme/zoo.git")
  put(upstream, "README.md", ["# Zoo"])
  commit(upstream, "09:00", "start")
  const early = copiedBefore === "any work" ? copyOf(upstream, join(home, "fork")) : undefined
  put(upstream, "src/zoo.ts", FIRST)
  const made = { hash: commit(upstream, "10:00", "zoo: the table of quokkas"), subject: "zoo: the table of quokkas" }
  session(home, upstream.folder, ONE, "Add the quokka table", "src/zoo.ts", FIRST, 10, made)
  const fork = early ?? copyOf(upstream, join(home, "fork"))
  // The same lines are written in both, but only the first repository's agent is known.
  session(home, upstream.folder, TWO, "Now the wombats", "src/zoo.ts", [...FIRST, ...SECOND], 12)
  put(fork, "src/zoo.ts", [...FIRST, ...SECOND, ...NUMBATS])
  commit(fork, "12:05", "zoo: more animals")
  expect(await warmDex(home, ["sync"])).toMatchObject({ code: 0 })
  return { home, upstream, fork, ask: createAsk(home, fork) }
}

function copyOf(from: Repository, folder: string): Repository {
  from.git("clone", "-q", `file://${from.folder}`, folder)
  const copy = makeRepository(folder)
  copy.git("remote", "set-url", "origin", "https://github.com/me/zoo.git")
  return copy
}

test("a fork's lines are by the upstream's conversations whose commits it contains, and by no others", async () => {
  const { upstream, ask } = await twoRepositories("the commit")
  const answer = await ask("src/zoo.ts")
  expect(conversationsOfLines(answer)).toEqual([...refsOf(FIRST, ONE), ...refsOf(SECOND), ...refsOf(NUMBATS)])
  expect(answer.notes).toContain(
    `Includes 1 conversation of ${upstream.folder}, whose commits this repository contains.`,
  )
})

test("a repository from the same template is told nothing of the other's conversations", async () => {
  const { ask } = await twoRepositories("any work")
  const answer = await ask("src/zoo.ts")
  expect(answer).toMatchObject({ proved: 0, likely: 0 })
  expect(JSON.stringify(answer)).not.toMatch(/upstream|1111/)
})

test("a fork is not told what conversations of a private upstream did", async () => {
  const { home, upstream, ask } = await twoRepositories("the commit")
  expect(await warmDex(home, ["private", upstream.folder])).toMatchObject({ code: 0 })
  const answer = await ask("src/zoo.ts")
  expect(answer).toMatchObject({ proved: 0, likely: 0 })
  expect(JSON.stringify(answer)).not.toMatch(/upstream|1111/)
})
