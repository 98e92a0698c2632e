import type { Equivalent } from '../equivalent.ts'
import { builtInToolsEquivalents } from './built-in-tools.ts'
import { cliEquivalents } from './cli.ts'
import { contentEquivalents } from './content.ts'
import { ledgerEquivalents } from './ledger.ts'
import { machineEquivalents } from './machine.ts'
import { providersEquivalents } from './providers.ts'
import { recordEquivalents } from './record.ts'
import { replayEquivalents } from './replay.ts'
import { runtimeEquivalents } from './runtime.ts'
import { sqliteEquivalents } from './sqlite.ts'
import { toolsEquivalents } from './tools.ts'
import { vocabularyEquivalents } from './vocabulary.ts'

/** Every mutant that is left out, and why. */
export const equivalents: readonly Equivalent[] = [
  ...machineEquivalents,
  ...runtimeEquivalents,
  ...ledgerEquivalents,
  ...contentEquivalents,
  ...recordEquivalents,
  ...sqliteEquivalents,
  ...toolsEquivalents,
  ...builtInToolsEquivalents,
  ...vocabularyEquivalents,
  ...providersEquivalents,
  ...replayEquivalents,
  ...cliEquivalents,
]
