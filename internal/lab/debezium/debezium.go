// Package debezium runs a real Debezium for tests: its connector of PostgreSQL in a Java process of its own, which
// sends the events to a topic. It takes a JDK from 17 on, and Maven, which fetches it once into the user's cache.
package debezium

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/isowatch/isowatch/internal/lab/fetched"
)

// Version of Debezium that is run. pom.xml names the same.
const Version = "3.6.1.Final"

//go:embed pom.xml Stream.java
var files embed.FS

// Install fetches and compiles what there is to run, unless it is there, and returns Java's class path.
func Install(ctx context.Context) (classPath string, err error) {
	dir, err := fetched.Cache("debezium-" + Version)
	if err != nil {
		return "", err
	}
	made, err := fetched.Once(ctx, dir, "libs", fetch)
	return filepath.Join(made, "*") + string(os.PathListSeparator) + made, err
}

// fetch has Maven put the jars into the folder libs of work, and the compiler what runs them.
func fetch(ctx context.Context, work string) error {
	libs := filepath.Join(work, "libs")
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return fmt.Errorf("%w (Debian and Ubuntu: apt-get install maven)", err)
	}
	javac, err := exec.LookPath("javac")
	if err != nil {
		return fmt.Errorf("%w (Debian and Ubuntu: apt-get install openjdk-17-jdk-headless)", err)
	}
	for _, name := range []string{"pom.xml", "Stream.java"} {
		b, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(work, name), b, 0o644); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{mvn, "--quiet", "--batch-mode", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=" + libs},
		{javac, "-cp", filepath.Join(libs, "*"), "-d", libs, "Stream.java"},
	} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir = work
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("installing Debezium %s: %w: %s", Version, err, out)
		}
	}
	return nil
}

// Command is Debezium with these settings, NAME=VALUE, as its documentation has them, which sends to a topic.
func Command(ctx context.Context, classPath, brokers, topic string, settings ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "java", append([]string{"-Xmx256m", "-cp", classPath, "Stream", "to.brokers=" + brokers,
		"to.topic=" + topic}, settings...)...)
}
