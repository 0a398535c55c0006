import { serveOrders } from "../subprocess/serve.ts"
import { readSections } from "./read-document.ts"

// The process that reads a collection: files in, redacted sections out.

serveOrders(readSections)
