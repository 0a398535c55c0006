import { serveOrders } from "../subprocess/serve.ts"
import { readSections } from "./read-document.ts"

// The main module of the process that reads a collection. It receives files and returns redacted sections.

serveOrders(readSections)
