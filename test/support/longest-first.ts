import { join, relative } from "node:path"
import { BaseSequencer, type TestSpecification } from "vitest/node"

const TESTS = join(import.meta.dirname, "..")

/** The files that take longest, or wait longest, whatever their size. If one of them starts last, the other workers are idle. */
export const LONGEST_FILES = [
  "view/browser.test.ts",
  "view/buttons.test.ts",
  "view/learning.test.ts",
  "watch/watch.test.ts",
  "cli/picker/picker.test.ts",
  "shape/release.test.ts",
  "integrations/install.test.ts",
  "embed/local.test.ts",
  "view/find-browser.test.ts",
  "git/commits.test.ts",
  "ingest/copies.test.ts",
  "cli/walks.test.ts",
  "ingest/project-code.test.ts",
]

/**
 * Vitest begins with the files that took longest the last time, and in a new clone with the largest. The longest files here are
 * small, so they are listed.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return sortLongestFirst(await super.sort(files))
  }
}

/** Sorts the files within a group; all others keep their order. */
export function sortLongestFirst(files: TestSpecification[]): TestSpecification[] {
  const groupOf = ({ project }: TestSpecification) => project.config.sequence.groupOrder
  return files.toSorted((a, b) => groupOf(a) - groupOf(b) || placeOf(a.moduleId) - placeOf(b.moduleId))
}

function placeOf(file: string): number {
  const place = LONGEST_FILES.indexOf(relative(TESTS, file).replaceAll("\\", "/"))
  return place === -1 ? LONGEST_FILES.length : place
}
