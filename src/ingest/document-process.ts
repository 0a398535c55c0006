import { serveOrders } from "../subprocess/serve.ts"
import { readSections } from "./read-document.ts"

// The process that reads a collection: it receives files and returns redacted sections.

serveOrders(readSections)
