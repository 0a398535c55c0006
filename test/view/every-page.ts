import { warmDex } from "../support/warm.ts"

/** Routes that are not pages: parts of pages, and files to save. */
export const NO_PAGES = ["/newest", "/c/:ref/part", "/file/part", "/c/:ref/export.html", "/c/:ref/export.md"]

/** An address for every page of a synced home, with its newest conversations and this project. */
export async function addressesFor(home: string, project: string): Promise<string[]> {
  const outputOf = async (args: string[], cwd = home) =>
    JSON.parse((await warmDex(home, [...args, "--json"], {}, cwd)).stdout)
  const { conversations } = (await outputOf(["list", "-n", "2"])) as { conversations: { id: string }[] }
  const { decisions } = (await outputOf(["decisions", "--all"])) as { decisions: { ref: string }[] }
  const { fixes } = (await outputOf(["fix", "expected 3.1 to be 4.4"])) as { fixes: { failed_ref: string }[] }
  const { commits } = (await outputOf(["blame", "HEAD"], project).catch(() => ({ commits: [] }))) as {
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
