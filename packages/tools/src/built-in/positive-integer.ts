import { ConfigurationError } from '@tallystick/core'

/** An option of a built-in tool that is a maximum. Throws `ConfigurationError` for one that is no whole number from 1. */
export function positiveInteger(toolName: string, option: string, value: number): number {
  if (Number.isSafeInteger(value) && value > 0) return value
  throw new ConfigurationError(
    `The option ${option} of the tool ${toolName} is ${value}. Give a whole number from 1, or leave it out for the default.`,
  )
}
