package rules

// RaceEnabled is raceEnabled.
const RaceEnabled = raceEnabled
