/**
 * What later turns show the model of a reply in which `outputStream` showed another text: what it wrote, or what was shown.
 * Reasoning is always as it was written: its provider takes it back in no other form.
 */
export const nextTurns = ['written', 'shown'] as const
export type NextTurn = (typeof nextTurns)[number]

/** How replies are shown while they are written, as an agent's definition records it: transforms by name, in order. */
export interface OutputPolicy {
  readonly transforms: readonly string[]
  /** `written` where absent. */
  readonly nextTurn?: NextTurn
}
