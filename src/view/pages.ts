import { commitPage } from "./files/commit-page.ts"
import { decisionPage } from "./files/decision-page.ts"
import { filePage, filePart } from "./files/file-page.ts"
import { fixPage } from "./files/fix-page.ts"
import { findPage } from "./find/find-page.ts"
import { deletedSoonPart } from "./home/deleted-soon-part.ts"
import { homePage } from "./home/home-page.ts"
import { leftOpenPart } from "./home/left-open-part.ts"
import { newestPart } from "./home/newest.ts"
import { projectsPart } from "./home/projects-part.ts"
import { spentPart } from "./home/spent-part.ts"
import { yearPart } from "./home/year-part.ts"
import type { PageRoute } from "./page.ts"
import { exportPage } from "./read/export-page.ts"
import { rawPage } from "./read/raw-page.ts"
import { factsPart, outlinePart, readPage, readPart, wholePart } from "./read/read-page.ts"
import { withinPage } from "./read/within-page.ts"
import { usagePage } from "./usage/usage-page.ts"

/** Every page, with its path below the base. */
export const pages: readonly PageRoute[] = [
  { path: "/", render: homePage },
  { path: "/year", render: yearPart },
  { path: "/spent", render: spentPart },
  { path: "/newest", render: newestPart },
  { path: "/left-open", render: leftOpenPart },
  { path: "/deleted-soon", render: deletedSoonPart },
  { path: "/projects", render: projectsPart },
  { path: "/usage", render: usagePage },
  { path: "/find", render: findPage },
  { path: "/c/:ref", render: readPage },
  { path: "/c/:ref/part", render: readPart },
  { path: "/c/:ref/outline", render: outlinePart },
  { path: "/c/:ref/facts", render: factsPart },
  { path: "/c/:ref/find", render: withinPage },
  { path: "/c/:ref/whole/:number/:part", render: wholePart },
  { path: "/c/:ref/raw", render: rawPage },
  { path: "/c/:ref/export.html", render: exportPage("html") },
  { path: "/c/:ref/export.md", render: exportPage("markdown") },
  { path: "/file", render: filePage },
  { path: "/file/part", render: filePart },
  { path: "/commit", render: commitPage },
  { path: "/decision/:id", render: decisionPage },
  { path: "/fix/:id", render: fixPage },
]
