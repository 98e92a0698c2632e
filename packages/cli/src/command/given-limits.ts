import { InvalidArgumentError } from 'commander'
import { type Limits } from '@tallystick/core'
import { limitNames, onLimits, type OnLimit } from '@tallystick/core/vocabulary'

/** Limits that are a number: those that can be met, and those that shape a run. */
const numbers: readonly string[] = [...limitNames, 'maxConcurrency', 'maxApprovalMs', 'graceMs']

/** One more `name=value` of the command line, beside those before it. */
export function withLimit(text: string, before: Limits = {}): Limits {
  const [, name = '', value = ''] = /^([^=]*)=(.*)$/s.exec(text) ?? []
  if (name === 'onLimit') {
    const policy = onLimits.find((known): known is OnLimit => known === value)
    if (policy) return { ...before, onLimit: policy }
    throw new InvalidArgumentError(`onLimit is one of ${onLimits.join(', ')}.`)
  }
  if (!numbers.includes(name)) {
    throw new InvalidArgumentError(
      `Write name=value, such as maxTurns=5, with one of ${numbers.join(', ')}, onLimit.`,
    )
  }
  const max = value.trim() === '' ? Number.NaN : Number(value)
  if (!Number.isFinite(max) || max < 0) throw new InvalidArgumentError(`${name} has to be a number from 0.`)
  return { ...before, [name]: max }
}
