import { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { readPlaces } from "../../src/config/places.ts"
import { createPlaceFinder } from "../../src/git/project.ts"
import { identifyFolder, identifyProjects } from "../../src/ingest/identify-projects.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { conversation, textMessage, unit } from "../support/conversations.ts"
import { makeRepository, type Repository } from "../support/repository.ts"
import { tempDir } from "../support/temp.ts"

const API = "https://github.com/acme/api.git"

/** A history in an empty home, and folders beside it. */
function world() {
  const root = tempDir()
  const home = { dir: join(root, "dex"), history: join(root, "dex", "history.db"), lock: join(root, "dex", "lock") }
  mkdirSync(home.dir)
  const store = openStore(home.history)
  const placeOf = createPlaceFinder()
  const deps = { store, home }
  let count = 0
  return {
    root,
    store,
    home,
    repository: (name: string) => makeRepository(join(root, name)),
    /** An agent worked in this folder. */
    worked: async (folder: string, commits: { hash: string; subject: string }[] = []) => {
      const id = `c${++count}`
      const effects = commits.map((commit) => ({ type: "commit" as const, ...commit }))
      const message = textMessage(`${id}-1`, `work in ${folder}`, { role: "assistant", effects })
      const { project, worktree } = placeOf(folder)
      const more = { cwds: [folder], project, ...(worktree !== undefined && { worktrees: [worktree] }) }
      await store.writeUnit(unit(id, [conversation(id, [message], more)]))
      return { source: "claude_code" as const, id }
    },
    /** An agent wrote these lines into these files of the folder. */
    wrote: async (folder: string, files: string[], lines: string[]) => {
      const id = `c${++count}`
      const counts = { old_start: 0, old_lines: 0, new_start: 1, new_lines: lines.length }
      const hunks = files.map((file) => ({
        path: join(folder, file),
        ...counts,
        lines: lines.map((line) => `+${line}`),
      }))
      const part = { type: "tool_result" as const, text: "done", origin: "local_tool" as const, is_error: false, hunks }
      const effects = files.map((file) => ({
        type: "file" as const,
        path: join(folder, file),
        action: "edited" as const,
        added: lines.length,
      }))
      const message = textMessage(`${id}-1`, "", { role: "tool", parts: [part], effects })
      await store.writeUnit(unit(id, [conversation(id, [message], { cwds: [folder], project: folder })]))
    },
    /** An agent made a pull request in this folder. */
    requested: async (folder: string, url: string) => {
      const id = `c${++count}`
      const message = textMessage(`${id}-1`, "", { role: "assistant", effects: [{ type: "pull_request", url }] })
      await store.writeUnit(unit(id, [conversation(id, [message], { cwds: [folder], project: folder })]))
    },
    sync: () => identifyProjects(deps),
    startedIn: (folder: string) => identifyFolder(deps, folder),
    /** The projects, each with all its folders, relative to the root. */
    projects: async () => {
      const all = await store.projectIdentities()
      const relative = (path: string) => (path.startsWith(root) ? path.slice(root.length + 1) : path)
      return all.map(({ path, folders = [] }) => [path, ...folders.map((folder) => folder.path)].map(relative))
    },
  }
}

function commit({ git, folder }: Repository, subject: string): { hash: string; subject: string } {
  writeFileSync(join(folder, "file.txt"), subject)
  git("add", "-A")
  git("commit", "-qm", subject)
  return { hash: git("rev-parse", "--short=7", "HEAD"), subject }
}

/** A repository with one commit and this remote. */
function apiIn({ repository }: ReturnType<typeof world>, name: string, remote = API): Repository {
  const made = repository(name)
  commit(made, `begin ${name}`)
  if (remote !== "") made.git("remote", "add", "origin", remote)
  return made
}

function cloneOf({ root, repository }: ReturnType<typeof world>, of: Repository, name: string, ...args: string[]) {
  of.git("clone", "-q", ...args, `file://${of.folder}`, join(root, name))
  return repository(name)
}

describe("the folders of one project", () => {
  test("are two clones with the same remote, whatever the protocol and the user name", async () => {
    const here = world()
    const first = apiIn(here, "first")
    const second = cloneOf(here, first, "second")
    second.git("remote", "set-url", "origin", "git@github.com:acme/api.git")
    await here.worked(first.folder)
    await here.worked(join(first.folder, "src"))
    await here.worked(second.folder)
    const joined = await here.sync()
    expect(await here.projects()).toEqual([["first", "second"]])
    expect(joined).toMatchObject([{ folder: second.folder, project: first.folder }])
    expect(joined[0]!.why).toMatch(
      /^both have the remote github\.com\/acme\/api and the same first commit [0-9a-f]{12}$/,
    )
    expect(readPlaces(here.home).projectOf(second.folder)).toBe(first.folder)
    const { rows } = await here.store.list({ in_project: first.folder, limit: 10, offset: 0 })
    expect(rows).toHaveLength(3)
  })

  test("are a repository and its clone on the same machine, without any network address", async () => {
    const here = world()
    const first = apiIn(here, "first", "")
    const second = cloneOf(here, first, "second")
    await here.worked(first.folder)
    await here.worked(second.folder)
    const [joined] = await here.sync()
    expect(joined!.why).toBe("one was cloned from the other on this machine")
  })

  test("are a fork and its upstream, if the fork names it as a remote", async () => {
    const here = world()
    const upstream = apiIn(here, "upstream")
    const fork = cloneOf(here, upstream, "fork")
    fork.git("remote", "set-url", "origin", "https://github.com/me/api")
    fork.git("remote", "add", "upstream", API)
    await here.worked(upstream.folder)
    await here.worked(fork.folder)
    await here.sync()
    expect(await here.projects()).toEqual([["fork", "upstream"]])
  })

  test("are worktrees, below the repository and beside it", async () => {
    const here = world()
    const api = apiIn(here, "api")
    api.git("worktree", "add", "-q", join(here.root, "beside"))
    api.git("worktree", "add", "-q", join(api.folder, ".worktrees", "below"))
    await here.worked(join(here.root, "beside"))
    await here.worked(join(api.folder, ".worktrees", "below"))
    await here.sync()
    expect(await here.projects()).toEqual([["api", "beside"]])
    // The worktree is gone, and its conversation is read again.
    rmSync(join(here.root, "beside"), { recursive: true })
    await here.worked(join(here.root, "beside"))
    expect(await here.projects()).toEqual([["api", "beside"]])
  })

  test("are a shallow clone whose commit the other has, and a partial clone", async () => {
    const here = world()
    const api = apiIn(here, "api")
    commit(api, "second")
    const shallow = cloneOf(here, api, "shallow", "--depth", "1")
    const partial = cloneOf(here, api, "partial", "--filter=blob:none", "--no-checkout")
    for (const { git } of [shallow, partial]) git("remote", "set-url", "origin", API)
    await here.worked(api.folder)
    await here.worked(shallow.folder)
    await here.worked(partial.folder)
    await here.sync()
    expect(await here.projects()).toEqual([["api", "partial", "shallow"]])
  })

  test("are a renamed folder and its new name, by the commits that its conversations made", async () => {
    const here = world()
    const api = apiIn(here, "old-name")
    const made = commit(api, "auth: one refresh at a time")
    renameSync(api.folder, join(here.root, "new-name"))
    await here.worked(join(here.root, "old-name"), [made])
    expect(await here.startedIn(join(here.root, "new-name"))).toBe(join(here.root, "old-name"))
    expect(await here.projects()).toEqual([["old-name", "new-name"]])
    // From the next sync on, it is called by its new name.
    await here.sync()
    expect(await here.projects()).toEqual([["new-name", "old-name"]])
    expect(await here.sync()).toEqual([])
    expect(readPlaces(here.home).projectOf(join(here.root, "old-name"))).toBe(join(here.root, "new-name"))
  })

  test("are a deleted folder of which git was asked before, and a new clone", async () => {
    const here = world()
    const api = apiIn(here, "first")
    await here.worked(api.folder)
    await here.sync()
    const bare = join(here.root, "server.git")
    api.git("clone", "-q", "--bare", api.folder, bare)
    rmSync(api.folder, { recursive: true })
    const clone = here.repository("again")
    clone.git("fetch", "-q", bare, "main:main", "--update-head-ok")
    clone.git("remote", "add", "origin", API)
    expect(await here.startedIn(clone.folder)).toBe(api.folder)
  })

  test("stay the same after the history was rewritten, and so do new clones of it", async () => {
    const here = world()
    const api = apiIn(here, "api")
    await here.worked(api.folder)
    await here.sync()
    const old = cloneOf(here, api, "old-clone")
    old.git("remote", "set-url", "origin", API)
    api.git("checkout", "-q", "--orphan", "rewritten")
    const rewritten = commit(api, "all of it, in one commit")
    await here.worked(api.folder, [rewritten])
    await here.sync()
    const clone = cloneOf(here, api, "new-clone")
    clone.git("remote", "set-url", "origin", API)
    expect(await here.startedIn(clone.folder)).toBe(api.folder)
    expect(await here.startedIn(old.folder)).toBe(api.folder)
  })

  test("are what the user says, until the user splits them, and dex never joins those again", async () => {
    const here = world()
    const [api, web] = [apiIn(here, "api"), apiIn(here, "web", "https://github.com/acme/web")]
    const inApi = await here.worked(api.folder)
    const inWeb = await here.worked(web.folder)
    await here.sync()
    await here.store.joinProject(web.folder, api.folder, "you joined them")
    expect((await here.store.conversation(inWeb))!.project).toBe(api.folder)
    expect(await here.store.splitProject(web.folder)).toBe(true)
    expect((await here.store.conversation(inWeb))!.project).toBe(web.folder)
    expect((await here.store.conversation(inApi))!.project).toBe(api.folder)
    web.git("remote", "set-url", "origin", API)
    web.git("fetch", "-q", api.folder, "main")
    web.git("reset", "-q", "--hard", "FETCH_HEAD")
    await here.worked(web.folder)
    expect(await here.sync()).toEqual([])
    expect(await here.store.splitProject(web.folder)).toBe(false)
  })

  test("can be split at the folder by which the project is called", async () => {
    const here = world()
    const api = apiIn(here, "api")
    const clone = cloneOf(here, api, "clone")
    const inApi = await here.worked(api.folder)
    const inClone = await here.worked(clone.folder)
    await here.sync()
    expect(await here.store.splitProject(api.folder)).toBe(true)
    expect((await here.store.conversation(inApi))!.project).toBe(api.folder)
    expect((await here.store.conversation(inClone))!.project).toBe(clone.folder)
  })
})

describe("different projects", () => {
  const pairs: [string, (here: ReturnType<typeof world>) => [Repository, Repository]][] = [
    [
      "began from one template, with the same first commit and other remotes",
      (here) => {
        const template = apiIn(here, "template", "https://github.com/acme/template")
        const copy = cloneOf(here, template, "copy")
        copy.git("remote", "set-url", "origin", "https://github.com/acme/product")
        return [template, copy]
      },
    ],
    [
      "have the same name and nothing else",
      (here) => [apiIn(here, "one/api"), apiIn(here, "two/api", "https://github.com/other/api")],
    ],
    ["claim the same remote without any common commit", (here) => [apiIn(here, "one"), apiIn(here, "two")]],
    [
      "merged a library with its history",
      (here) => {
        const library = apiIn(here, "library", "https://github.com/acme/library")
        const app = apiIn(here, "app", "https://github.com/acme/app")
        app.git("fetch", "-q", library.folder, "main")
        app.git("merge", "-q", "-s", "ours", "--allow-unrelated-histories", "-m", "vendor", "FETCH_HEAD")
        return [library, app]
      },
    ],
    ["have no commits yet", (here) => [here.repository("empty"), here.repository("empty-too")]],
    [
      "are a shallow clone that cannot show what it is",
      (here) => {
        const api = apiIn(here, "api")
        const server = cloneOf(here, api, "server")
        commit(server, "unknown to the other")
        const shallow = cloneOf(here, server, "shallow", "--depth", "1")
        shallow.git("remote", "set-url", "origin", API)
        return [api, shallow]
      },
    ],
    [
      "are a repository and its submodule",
      (here) => {
        const module = apiIn(here, "module", "https://github.com/acme/module")
        const app = apiIn(here, "app", "https://github.com/acme/app")
        app.git("-c", "protocol.file.allow=always", "submodule", "-q", "add", module.folder, "module")
        return [app, here.repository("app/module")]
      },
    ],
  ]

  test.each(pairs)("%s", async (_, make) => {
    const here = world()
    const [one, two] = make(here)
    await here.worked(one.folder)
    await here.worked(two.folder)
    expect(await here.sync()).toEqual([])
    expect(await here.projects()).toHaveLength(2)
    rmSync(here.home.dir, { recursive: true })
  })

  test("include a folder without git, even if its conversations made commits elsewhere", async () => {
    const here = world()
    const [api, web] = [apiIn(here, "api"), apiIn(here, "web", "https://github.com/acme/web")]
    mkdirSync(join(here.root, "all"))
    const commits = [commit(api, "in the api"), commit(web, "in the web")]
    await here.worked(api.folder)
    await here.worked(web.folder)
    await here.worked(join(here.root, "all"), commits)
    await here.worked(join(here.root, "gone"), commits)
    expect(await here.sync()).toEqual([])
  })

  test("include twenty repositories with the same file names, and a folder that is gone", async () => {
    const here = world()
    const text = (n: number) =>
      Array.from({ length: 40 }, (_, i) => `export const value${i} = "number ${i} of repository ${n}"`)
    const files = ["src/index.ts", "src/server.ts", "src/client.ts", "package.json", "LICENSE"]
    for (let n = 0; n < 20; n++) {
      const made = here.repository(`app${n}`)
      mkdirSync(join(made.folder, "src"))
      for (const file of files)
        writeFileSync(join(made.folder, file), (file === "LICENSE" ? text(0) : text(n)).join("\n"))
      commit(made, "first")
      await here.worked(made.folder)
    }
    await here.wrote(join(here.root, "gone"), files, text(99))
    // A few files of a framework, which an agent wrote in two projects.
    await here.wrote(join(here.root, "gone"), ["src/index.ts", "src/server.ts", "src/client.ts"], text(3))
    await here.wrote(join(here.root, "gone"), ["a.ts", "b.ts", "c.ts", "d.ts"], text(98))
    expect(await here.sync()).toEqual([])
    await here.wrote(join(here.root, "gone-too"), files, text(7))
    expect(await here.sync()).toMatchObject([
      {
        folder: join(here.root, "gone-too"),
        project: join(here.root, "app7"),
        why: "the repository has the lines that its conversations wrote",
      },
    ])
  })

  test("include a repository with a few of the files, unless their conversations made pull requests for its remote", async () => {
    const here = world()
    const app = apiIn(here, "app")
    const lines = Array.from({ length: 40 }, (_, i) => `export const value${i} = "number ${i}"`)
    const [few, others] = [
      ["a.ts", "b.ts", "c.ts"],
      ["d.ts", "e.ts", "f.ts", "g.ts"],
    ]
    for (const file of few) writeFileSync(join(app.folder, file), lines.join("\n"))
    commit(app, "the files")
    await here.worked(app.folder)
    const [gone, goneToo] = [join(here.root, "gone"), join(here.root, "gone-too")]
    for (const folder of [gone, goneToo]) {
      await here.wrote(folder, few, lines)
      await here.wrote(folder, others, lines)
    }
    await here.requested(gone, "https://github.com/acme/other/pull/7")
    await here.requested(goneToo, "https://github.com/acme/api/pull/8")
    expect(await here.sync()).toMatchObject([{ folder: goneToo, project: app.folder }])
  })

  test("include a commit with the same abbreviated name and another subject", async () => {
    const here = world()
    const api = apiIn(here, "api")
    const { hash } = commit(api, "the real one")
    await here.worked(api.folder)
    await here.worked(join(here.root, "gone"), [{ hash, subject: "another one" }])
    expect(await here.sync()).toEqual([])
  })
})

describe("a private project", () => {
  test("makes the projects that are joined with it private, in either direction", async () => {
    const here = world()
    const api = apiIn(here, "api")
    const clone = cloneOf(here, api, "clone")
    await here.worked(api.folder)
    const inClone = await here.worked(clone.folder)
    await here.store.setPrivate(clone.folder, true)
    await here.sync()
    expect(await here.projects()).toEqual([["api", "clone"]])
    expect((await here.store.projects())[0]).toMatchObject({ private: true })
    expect(await here.store.splitProject(clone.folder)).toBe(true)
    expect((await here.store.conversation(inClone))!.private).toBe(true)
    expect((await here.store.projects()).map((project) => project.private)).toEqual([true, true])
  })

  test("is not opened by a stranger's copy of a public first commit", async () => {
    const here = world()
    const api = apiIn(here, "api")
    await here.worked(api.folder)
    await here.store.setPrivate(api.folder, true)
    await here.sync()
    const stranger = cloneOf(here, api, "stranger")
    stranger.git("remote", "remove", "origin")
    expect(await here.startedIn(stranger.folder)).toBeUndefined()
    stranger.git("remote", "add", "origin", "https://github.com/stranger/api")
    expect(await here.startedIn(stranger.folder)).toBeUndefined()
  })

  test("is not opened by a repository that has lines of its files", async () => {
    const here = world()
    const app = apiIn(here, "app")
    const files = ["a.ts", "b.ts", "c.ts"]
    const lines = Array.from({ length: 40 }, (_, i) => `export const value${i} = "number ${i}"`)
    for (const file of files) writeFileSync(join(app.folder, file), lines.join("\n"))
    commit(app, "the files")
    await here.worked(app.folder)
    await here.wrote(join(here.root, "gone"), files, lines)
    await here.store.setPrivate(join(here.root, "gone"), true)
    expect(await here.sync()).toEqual([])
  })

  test("is not opened by a repository that only claims its remote", async () => {
    const here = world()
    const api = apiIn(here, "api")
    await here.worked(api.folder)
    await here.store.setPrivate(api.folder, true)
    await here.sync()
    const stranger = apiIn(here, "stranger")
    writeFileSync(join(stranger.folder, ".git", "shallow"), `${stranger.git("rev-parse", "HEAD")}\n`)
    expect(await here.startedIn(stranger.folder)).toBeUndefined()
  })
})

test("git is asked about a folder only once, and again when its git folder changed", async () => {
  const here = world()
  const api = apiIn(here, "api")
  await here.worked(api.folder)
  await here.sync()
  const [before] = await here.store.projectIdentities()
  expect(before!.root_commit).toMatch(/^[0-9a-f]{40}$/)
  expect(await here.store.hasUnidentifiedProjects()).toBe(false)
  api.git("remote", "add", "backup", "https://gitlab.com/acme/api")
  await here.sync()
  const [after] = await here.store.projectIdentities()
  expect(after!.remotes).toEqual(["github.com/acme/api", "gitlab.com/acme/api"])
})

test.each([
  ["a remote with control characters", "https://github.com/acme/\u001b[31mred"],
  ["a remote that is an option", "--upload-pack=touch /tmp/owned"],
  ["a remote of a megabyte", `https://github.com/${"a".repeat(1 << 20)}`],
  ["a remote with a command", "ext::sh -c 'touch owned'"],
])("%s is not stored", async (_, remote) => {
  const here = world()
  const api = apiIn(here, "api", "")
  appendFileSync(join(api.folder, ".git", "config"), `[remote "origin"]\n\turl = ${JSON.stringify(remote)}\n`)
  await here.worked(api.folder)
  await here.sync()
  const [identity] = await here.store.projectIdentities()
  expect(identity!.remotes).toEqual([])
})
