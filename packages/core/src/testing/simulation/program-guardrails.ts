import type { Guardrail } from '../../tools/guardrails.ts'
import type { GuardrailPlan } from './program-plan.ts'

/** Guardrails that say the same of everything, as their plans have it. */
export function guardrailsOf(plans: readonly GuardrailPlan[]): readonly Guardrail[] {
  return plans.map((plan, index): Guardrail => {
    const named = { name: `guardrail ${index}`, timeoutMs: 200 }
    const { on, beside } = plan
    switch (on) {
      case 'input':
        return { ...named, on, beside, check: () => verdictOf(plan, 'guarded input') }
      case 'output':
        return { ...named, on, check: () => verdictOf(plan, '{"guarded":true}') }
      case 'tool_input':
        return { ...named, on, check: () => verdictOf(plan, { do: 'succeed', guarded: true }) }
      case 'tool_output':
        return { ...named, on, check: () => verdictOf(plan, 'guarded result') }
    }
  })
}

async function verdictOf<Replacement>(
  { says }: GuardrailPlan,
  replacement: Replacement,
): Promise<'pass' | { block: string } | { record: string } | { replace: Replacement }> {
  await Promise.resolve()
  switch (says) {
    case 'pass':
      return 'pass'
    case 'block':
      return { block: 'blocked' }
    case 'record':
      return { record: 'seen' }
    case 'replace':
      return { replace: replacement }
    case 'throw':
      throw new Error('broken guardrail')
    case 'hang':
      return await new Promise(() => {})
  }
}
