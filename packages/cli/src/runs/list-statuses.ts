import { runStatuses } from './run-status.ts'

/** Statuses to filter runs by. A failed run is done too, but did not end as wanted. */
export const listStatuses: readonly ((typeof runStatuses)[number] | 'failed')[] = [...runStatuses, 'failed']
