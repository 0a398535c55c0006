import { runGit } from "./run.ts"

/** Identifies a repository on every machine: by where it is fetched from, and by its first commit. */
export type RepositoryIdentity = { remote?: string; rootCommit?: string }

const LIMITS = { timeoutMs: 5_000, mostBytes: 1 << 20, readsOnly: true }

/** Returns an empty identity if the folder is not a repository or git does not answer in time. Never throws. */
export async function repositoryIdentity(folder: string): Promise<RepositoryIdentity> {
  const remote = (await outputOf(folder, ["config", "--get", "remote.origin.url"]))?.trim()
  const roots = (await outputOf(folder, ["rev-list", "--max-parents=0", "HEAD"]))?.trim().split("\n")
  const rootCommit = roots?.sort()[0]
  return {
    remote: remote ? normaliseRemote(remote) : undefined,
    rootCommit: rootCommit || undefined,
  }
}

async function outputOf(folder: string, args: string[]): Promise<string | undefined> {
  const pieces: Buffer[] = []
  try {
    const { code } = await runGit(args, { ...LIMITS, folder, onOutput: (bytes) => void pieces.push(bytes) })
    return code === 0 ? Buffer.concat(pieces).toString("utf8") : undefined
  } catch {
    return undefined // git is not installed
  }
}

/** Normalises a remote to host/owner/name, for any protocol, without a user name or password. */
export function normaliseRemote(remote: string): string {
  const scp = /^(?:[^@/\s]+@)?([^:/\s]+):(?!\/\/)(.+)$/.exec(remote)
  const url = /^[a-z+]+:\/\/(?:[^@/]*@)?([^/:]+)(?::\d+)?\/(.+)$/i.exec(remote)
  const [, host, path] = url ?? scp ?? []
  if (host === undefined || path === undefined) return remote.replace(/[\\/]+$/, "").replace(/\.git$/, "")
  return `${host.toLowerCase()}/${path.replace(/^\/+|\/+$/g, "").replace(/\.git$/, "")}`
}
