package node

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/isowatch/isowatch/internal/lab/fetched"
)

// Version of Apache Kafka that is run. pom.xml names the same.
const Version = "4.1.1"

// javaMin is the oldest Java that runs it.
const javaMin = 17

//go:embed pom.xml log4j2.yaml
var files embed.FS

// errMissing marks what only somebody else can install.
var errMissing = errors.New("not installed")

// cacheDir is where the jars are kept.
func cacheDir() (string, error) {
	if dir := os.Getenv("ISOWATCH_KAFKA_DIR"); dir != "" {
		return dir, nil
	}
	return fetched.Cache("kafka-" + Version)
}

// java finds a Java that is new enough.
func java() (string, error) {
	path := filepath.Join(os.Getenv("JAVA_HOME"), "bin", "java")
	if os.Getenv("JAVA_HOME") == "" {
		var err error
		if path, err = exec.LookPath("java"); err != nil {
			return "", fmt.Errorf("java: %w (Debian and Ubuntu: apt-get install openjdk-17-jre-headless)", errMissing)
		}
	}
	out, err := exec.Command(path, "-version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s -version: %w: %s", path, err, out)
	}
	m := regexp.MustCompile(`version "(\d+)`).FindSubmatch(out)
	if m == nil {
		return "", fmt.Errorf("%s -version said %q", path, out)
	}
	if v, _ := strconv.Atoi(string(m[1])); v < javaMin {
		return "", fmt.Errorf("java %d or later: %w (%s is version %d)", javaMin, errMissing, path, v)
	}
	return path, nil
}

// install fetches the jars unless they are there, and returns their folder.
func install(ctx context.Context) (string, error) {
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	return fetched.Once(ctx, dir, "libs", fetch)
}

// fetch has Maven put the jars into the folder libs of work.
func fetch(ctx context.Context, work string) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return fmt.Errorf("%w (Debian and Ubuntu: apt-get install maven)", err)
	}
	pom, err := files.ReadFile("pom.xml")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(work, "pom.xml"), pom, 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, mvn, "--quiet", "--batch-mode", "dependency:copy-dependencies",
		"-DincludeScope=runtime", "-DoutputDirectory="+filepath.Join(work, "libs"))
	cmd.Dir = work
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("fetching Kafka %s with Maven: %w: %s", Version, err, out)
	}
	return nil
}
