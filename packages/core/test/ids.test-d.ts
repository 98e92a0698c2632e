// Checked by the compiler and never run: each `@ts-expect-error` fails the build once its line compiles.
import { type RunId } from '@tallystick/core'
import { parseRunId, parseToolCallId, type ToolCallId } from '@tallystick/core/vocabulary'

declare const runId: RunId
declare const toolCallId: ToolCallId
declare const text: string

// The canary: were type tests not checked, or were they all `any`, this line would be the first to show it.
// @ts-expect-error a number is not a string
export const canary: string = 1

// @ts-expect-error a string is not a ToolCallId: only the runtime mints one
export const minted: ToolCallId = text
// @ts-expect-error a string is not a RunId
export const named: RunId = text
// @ts-expect-error a run's id does not name a call
export const crossed: ToolCallId = runId

// An id is still a string wherever one is wanted.
export const shown: string = toolCallId

// Reading an id from outside can fail, and the type says so.
export const parsed: ToolCallId | undefined = parseToolCallId(text)
// @ts-expect-error the text may not be an id
export const trusted: RunId = parseRunId(text)
