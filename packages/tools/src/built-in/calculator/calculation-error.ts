/** An expression that has no value. The message names the character, from 1. */
export class CalculationError extends Error {
  constructor(at: number, problem: string) {
    super(`At character ${at + 1}: ${problem}.`)
    this.name = 'CalculationError'
  }
}
