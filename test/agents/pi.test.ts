import { piConnector } from "../../src/agents/pi/connector.ts"
import { testConnector } from "./contract.ts"

testConnector(piConnector, "test/fixtures/pi")
