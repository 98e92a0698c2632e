export { recordingFetch, type RecordingFetchOptions } from './recording/recording-fetch.ts'
export { playedFetch, type PlayedFetch, type PlayedFetchOptions } from './recording/played-fetch.ts'
export { recordModel } from './recording/record-model.ts'
export { playedModel, type PlayedModel, type PlayedModelOptions } from './recording/played-model.ts'
