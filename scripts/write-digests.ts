// Writes packages/ledger/src/projection/tables/code-digests.ts: digests of the code by which stored snapshots and projections were made, so
// that those of other code are told apart: `pnpm digests`.
import { writeFile } from 'node:fs/promises'
import { digestsModule, digestsPath } from './digests/digests-module.ts'

await writeFile(digestsPath, digestsModule())
