import { answerOrders } from "./apart.ts"
import { readSections } from "./read-document.ts"

// The reading half of a collection: files in, redacted sections out.

answerOrders(readSections)
