import type { RunVerdict, StoreVerdict } from '@tallystick/ledger'
import { verifyLedger } from '@tallystick/ledger'
import type { CommandContext } from '../command-context.ts'
import { commandLine } from '../command-context.ts'
import type { ExitCode } from '../exit-code.ts'
import { exitCodes } from '../exit-code.ts'
import { withLedger } from '../open-ledger.ts'
import type { Paint } from '../view/paint.ts'
import { counted } from '../view/run-ending.ts'

/** `verify`: a line a run and one for the whole ledger. Exit code 4 where anything is not what was written. */
export function verify(context: CommandContext, ledgerPath: string): Promise<ExitCode> {
  const { json, paint, print, programName, say } = context
  return withLedger(ledgerPath, 'read', async (ledger) => {
    let sound = true
    for await (const verdict of verifyLedger(ledger)) {
      sound &&= verdict.ok
      await print(`${json ? JSON.stringify(verdict) : verdictText(verdict, paint)}\n`)
    }
    if (sound) return exitCodes.ok
    if (!json) {
      const look = commandLine(programName, 'export', ledgerPath)
      say(
        `This ledger is not what was written. Keep the file as it is, go on with a copy from before, and see what can still be read: ${look}`,
      )
    }
    return exitCodes.damaged
  })
}

function verdictText(verdict: RunVerdict | StoreVerdict, paint: Paint): string {
  const name = verdict.scope === 'run' ? verdict.runId : 'ledger'
  const counts = verdict.scope === 'run' ? [] : [counted(verdict.runs, 'run')]
  const found = [...counts, counted(verdict.events, 'event')].join(', ')
  if (verdict.ok) return `${name}  ${paint('green', 'ok')}  ${found}`
  return `${name}  ${paint('red', 'DAMAGED')}  ${damageText(verdict)}, ${found} sound`
}

function damageText(verdict: RunVerdict | StoreVerdict): string {
  if (verdict.scope === 'store' && verdict.broken === undefined)
    return counted(verdict.brokenRuns, 'damaged run')
  const place =
    verdict.scope === 'run' && verdict.broken !== undefined ? `at event ${verdict.broken.seq}: ` : ''
  const { what = '', expected = '', found = '' } = verdict.broken ?? {}
  return `${place}${what} should be ${expected}, is ${found}`
}
