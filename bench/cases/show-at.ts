import type { Case, Measurement } from './case.ts'
import { recordedRun } from './recorded-run.ts'
import { cliPath, start } from './started-process.ts'

export const showAt: Case = {
  name: 'show-at',
  what: '`tallystick show RUN --at SEQ --turn 1` in the middle of a run: the first look, and the next one.',
  isComparison: false,
  unit: 'look',
  params: [{ turns: 1_000 }],
  smokeParams: [{ turns: 4 }],
  own: ['first-look', 'next-look'],
  peers: [],
  async measure(trial): Promise<Measurement> {
    const { events, path } = await recordedRun(trial, trial.params['turns'] ?? 0)
    const seq = Math.ceil(events.length / 2)
    const words = ['show', path, events[0]?.runId ?? '', '--at', `${seq}`, '--turn', '1', '--no-pager']
    if (trial.subject === 'next-look') await start([cliPath(), ...words])
    const { output, ...took } = await start([cliPath(), ...words])
    if (!output.includes(`event ${seq} of ${events.length}`)) throw new Error(`It printed ${output}.`)
    return { units: 1, ...took }
  },
}
