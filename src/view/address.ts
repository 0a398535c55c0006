/** Every address of the view. All are below `base`, a name that only this user's browser is told: a cookie knows no port. */
export function createAddresses(base: string) {
  const to = (path: string, query: Record<string, string | number | undefined> = {}) => {
    const given = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) if (value !== undefined) given.set(name, String(value))
    return `${base}/${path}${given.size === 0 ? "" : `?${given}`}`
  }
  const conversation = (ref: string, rest = "") => `c/${encodeURIComponent(ref)}${rest}`
  return {
    base,
    to,
    home: () => to(""),
    find: (query: Record<string, string | number | undefined> = {}) => to("find", query),
    usage: (query: Record<string, string | number | undefined> = {}) => to("usage", query),
    /** A conversation, or one message of it. */
    read: (ref: string, number?: number) =>
      number === undefined ? to(conversation(ref)) : `${to(conversation(ref), { at: number })}#m${number}`,
    conversation: (ref: string, rest: string, query?: Record<string, string | number | undefined>) =>
      to(conversation(ref, `/${rest}`), query),
    file: (project: string, path: string, query: Record<string, string | number | undefined> = {}) =>
      to("file", { project, path, ...query }),
    commit: (project: string, commit: string) => to("commit", { project, commit }),
    decision: (id: string) => to(`decision/${encodeURIComponent(id)}`),
    fix: (id: string) => to(`fix/${encodeURIComponent(id)}`),
    asset: (name: string) => to(`assets/${name}`),
  }
}

export type Addresses = ReturnType<typeof createAddresses>

/** The address of what a printed ref names: `claude_code:1f3c…#12`. */
export function addressOfRef(to: Addresses, ref: string): string {
  const [, whole = ref, number] = /^(.*?)(?:#(\d+))?$/s.exec(ref)!
  return to.read(whole, number === undefined ? undefined : Number(number))
}
