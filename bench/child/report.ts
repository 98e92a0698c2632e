import type { Measurement } from '../cases/case.ts'
import type { Profile } from '../cases/profile-places.ts'

/** What a child process reports of one trial. */
export type ChildReport =
  | { readonly measurement: Measurement; readonly peakMiB: number; readonly profile?: Profile | undefined }
  | { readonly error: string }
