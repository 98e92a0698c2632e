// Runs trials in this process, one after the other, and sends what was measured to the process that asked for it.
import { caseNamed } from '../cases/case-named.ts'
import type { Trial } from '../cases/case.ts'
import { peakMiB } from '../cases/meter.ts'
import type { ChildReport } from './report.ts'

const [trials = '[]'] = process.argv.slice(2)

function report(report: ChildReport): Promise<void> {
  return new Promise((resolve) => process.send?.(report, () => resolve()))
}

for (const trial of JSON.parse(trials) as readonly Trial[]) {
  try {
    const measurement = await (await caseNamed(trial.of)).measure(trial)
    await report({ measurement, peakMiB: peakMiB() })
  } catch (error) {
    await report({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
  }
}
// A store that keeps timers must not keep this process.
process.exit()
