const MAX_NAME_LENGTH = 60

/** A file name made from a title, valid on any system. */
export function fileNameFromTitle(title: string): string {
  const words = title
    .toLowerCase()
    .normalize("NFKD")
    .replaceAll(/[^a-z0-9]+/g, "-")
    .slice(0, MAX_NAME_LENGTH)
    .replaceAll(/^-+|-+$/g, "")
  return words === "" ? "conversation" : words
}
