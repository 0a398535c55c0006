import { warmDex } from "../support/warm.ts"

/** What is no page of its own: parts of one, and files to save. */
export const NO_PAGES = ["/newest", "/c/:ref/part", "/file/part", "/c/:ref/export.html", "/c/:ref/export.md"]

/** An address of every page, of a home that was read, with its newest conversations and this project in them. */
export async function addressesFor(home: string, project: string): Promise<string[]> {
  const told = async (args: string[], cwd = home) =>
    JSON.parse((await warmDex(home, [...args, "--json"], {}, cwd)).stdout)
  const { conversations } = (await told(["list", "-n", "2"])) as { conversations: { id: string }[] }
  const { decisions } = (await told(["decisions", "--all"])) as { decisions: { ref: string }[] }
  const { fixes } = (await told(["fix", "expected 3.1 to be 4.4"])) as { fixes: { failed_ref: string }[] }
  const { commits } = (await told(["blame", "HEAD"], project).catch(() => ({ commits: [] }))) as {
    commits: { commit: string }[]
  }
  const ref = encodeURIComponent((conversations[1] ?? conversations[0]!).id)
  return [
    "/",
    "/year",
    "/spent?from=2020-01-01",
    "/left-open",
    "/deleted-soon",
    "/projects",
    "/usage?by=conversation",
    "/find",
    "/find?q=the",
    "/find?q=nosuch+word&project=x&from=2020-01",
    `/c/${ref}`,
    `/c/${ref}/outline`,
    `/c/${ref}/facts`,
    `/c/${ref}/find?q=the`,
    `/c/${ref}/whole/1/0`,
    `/c/${ref}/raw`,
    `/file?${new URLSearchParams({ project, path: "src/tides.ts" })}`,
    ...commits.map(({ commit }) => `/commit?${new URLSearchParams({ project, commit })}`),
    ...decisions.slice(0, 1).map((one) => `/decision/${encodeURIComponent(one.ref)}`),
    ...fixes.slice(0, 1).map((one) => `/fix/${encodeURIComponent(one.failed_ref)}`),
  ]
}
