const NEEDED = [
  "LICENSE",
  "README.md",
  "CHANGELOG.md",
  "dist/dex.js",
  "dist/read-thread.js",
  "dist/THIRD_PARTY_LICENSES.txt",
]
const ALLOWED = /^(dist\/|recipes\/|README\.md$|CHANGELOG\.md$|LICENSE$|package\.json$)/
/** The most bytes of the package, slightly more than its current size, so that whoever makes it grow notices and explains why. */
const MOST_BYTES = 2_260_000

/**
 * The problems of a package, as `npm pack --json` describes it: it must contain the program and nothing else of the repository,
 * and be small.
 * @param {{ files: { path: string }[], size: number }} pack
 * @returns {string[]}
 */
export function problemsOfPackage({ files, size }) {
  const paths = files.map(({ path }) => path)
  return [
    ...NEEDED.filter((path) => !paths.includes(path)).map((path) => `${path} is missing from the package`),
    ...paths.filter((path) => !ALLOWED.test(path)).map((path) => `${path} does not belong in the package`),
    ...(size < MOST_BYTES ? [] : [`the package has ${size} bytes; the limit is ${MOST_BYTES}`]),
  ]
}
