// The thread that SQLite runs on, in the process of one statement.
import { parentPort, workerData } from 'node:worker_threads'
import type { StatementMessage, StatementRequest } from './protocol.ts'
import { runStatement } from './run-statement.ts'

const say = (message: StatementMessage): void => parentPort?.postMessage(message, [])
say({ kind: 'running' })
say(runStatement(workerData as StatementRequest) as StatementMessage)
