// Package browser is the tests of the dashboard in a real Chromium. It is a module of its own, so
// that nobody who uses Tidegate gets what drives the browser.
//
// Start with TestStory.
package browser
