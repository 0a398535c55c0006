/** Names messages: by what their agent calls them, and the second of a name by its number. */
export function uniqueKeys(): (name: string) => string {
  const given = new Map<string, number>()
  return (name) => {
    const times = (given.get(name) ?? 0) + 1
    given.set(name, times)
    return times === 1 ? name : `${name}:${times}`
  }
}
