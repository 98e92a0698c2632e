import { runStatuses } from './run-status.ts'

/** Where runs can stand that are asked for; those that failed are done too, otherwise than was wanted. */
export const listStatuses: readonly ((typeof runStatuses)[number] | 'failed')[] = [...runStatuses, 'failed']
