import { type Clock, defaultHost, type Host } from '../../values/host.ts'
import { answerOf, anyFunction, ignoreRejection, valueThat } from '../../values/option.ts'
import { omitUndefined } from '../../values/json.ts'
import type { RuntimeOptions } from './runtime.ts'

const aTime = valueThat(
  'milliseconds since 1970, a whole number',
  (value) => Number.isSafeInteger(value) && (value as number) >= 0,
)
const aDuration = valueThat('a number of milliseconds', Number.isFinite)
const aFraction = valueThat(
  'a number from 0 (included) to 1 (excluded)',
  (value) => typeof value === 'number' && value >= 0 && value < 1,
)

/** A host as an application gives it, with each of its answers checked: a wrong time or number would make wrong ids and events. */
export function checkedHost({
  clock,
  random,
  report,
  process = defaultHost.process,
}: NonNullable<RuntimeOptions['host']>): Host {
  return {
    clock: clock ? checkedClock(clock) : defaultHost.clock,
    random: random ? () => answerOf('host.random of createRuntime', random, aFraction) : defaultHost.random,
    report: report ? checkedReport(report) : defaultHost.report,
    process,
  }
}

function checkedClock(clock: Clock): Clock {
  const subject = 'host.clock of createRuntime'
  const even = clock.even && (() => answerOf(`even of ${subject}`, () => clock.even?.() as number, aDuration))
  return {
    now: () => answerOf(`now of ${subject}`, () => clock.now(), aTime),
    schedule: (...timer) => answerOf(`schedule of ${subject}`, () => clock.schedule(...timer), anyFunction),
    ...omitUndefined({ even }),
  }
}

/** A report that throws must not make the run fail that it reports about. */
function checkedReport(report: Host['report']): Host['report'] {
  return (error, what) => {
    try {
      ignoreRejection(report(error, what))
    } catch (thrown) {
      defaultHost.report(error, what)
      defaultHost.report(thrown, 'host.report of createRuntime threw, and must not')
    }
  }
}
